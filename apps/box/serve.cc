// SPDX-License-Identifier: Apache-2.0
#include "apps/box/serve.h"

#include <fmt/format.h>

#include <utility>

#include "fabric/target/target.h"
#include "task/sync.h"

namespace cairn::apps {

namespace {

task::Task<Attempt<void>> add_namespaces(nvme::Registry& registry, const BoxOptions& options) {
  for (const BoxNamespace& each : options.namespaces) {
    const nvme::NamespaceOptions wanted{.nsid = each.nsid, .drive = each.drive};
    Result<uint32_t> added = co_await registry.add_namespace(options.subsystem.nqn, wanted);
    if (!added) {
      co_return refuse(
          fmt::format("drive {} cannot be served: {}", each.drive.text(), added.error().text()));
    }
  }
  co_return Attempt<void>{};
}

Attempt<std::vector<env::Address>> listen(fabric::Target& target, nvme::Registry& registry,
                                          const BoxOptions& options) {
  std::vector<env::Address> where;
  for (size_t i = 0; i < options.listen.size(); ++i) {
    const env::Address& wanted = options.listen[i];
    Result<env::Address> at = target.listen(wanted);
    if (!at) {
      const bool taken = at.error() == Errc::kExists;
      return refuse(fmt::format("cannot listen at {}: {}{}", wanted.text(), at.error().text(),
                                taken ? "; end what listens there or choose another port" : ""));
    }
    where.push_back(*at);
    nvme::PortOptions port{.port_id = static_cast<uint16_t>(i + 1), .listen = *at};
    if (i < options.advertise.size()) port.advertise = options.advertise[i];
    registry.add_port(port);
  }
  return where;
}

}  // namespace

task::Task<Attempt<void>> serve_box(env::Env& env, const BoxOptions& options,
                                    std::function<void(const std::vector<env::Address>&)> ready) {
  nvme::Registry registry(env);
  fabric::Target target(env, registry);
  Attempt<void> outcome;
  if (Result<void> added = registry.add_subsystem(options.subsystem); !added) {
    outcome = refuse(fmt::format("subsystem '{}' cannot be served: {}", options.subsystem.nqn,
                                 added.error().text()));
  } else {
    outcome = co_await add_namespaces(registry, options);
  }
  if (outcome) {
    if (Attempt<std::vector<env::Address>> where = listen(target, registry, options); where) {
      ready(*where);
      task::Event never;
      const Result<void> stopped = co_await never.wait(env.stop_token());
      (void)stopped;
    } else {
      outcome = std::unexpected(where.error());
    }
  }
  co_await target.close();
  co_await registry.close();
  co_return outcome;
}

}  // namespace cairn::apps
