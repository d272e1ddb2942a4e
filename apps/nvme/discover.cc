// SPDX-License-Identifier: Apache-2.0
// `cairn nvme discover`: what a discovery service knows, referrals included.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "apps/common/output.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/discovery_report.h"
#include "config/json_text.h"
#include "fabric/host/discovery.h"
#include "nvme/format/nqn.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

// Services that are asked at most, in all: referrals may go in circles.
constexpr size_t kServicesMax = 64;

class DiscoverCommand final : public Command {
 public:
  explicit DiscoverCommand(CLI::App& app) {
    add_place(app, "URI", uri_, server::Needs::kDiscovery,
              "nvme-tcp://HOST[:PORT], port 8009 by default");
    add_switch(app, "--follow", follow_, "ask the services it refers to as well");
    add_nvme_options(app, options_);
    set_examples(app, {"cairn nvme discover nvme-tcp://127.0.0.1:4420",
                       "cairn nvme discover nvme-tcp://box1 --follow --json"});
  }

  Attempt<int> run() override {
    Attempt<fabric::Uri> uri = server::find_target_uri(uri_, server::Needs::kDiscovery);
    if (!uri) return std::unexpected(uri.error());
    uri->nqn = nvme::kDiscoveryNqn;
    const Attempt<void> ran =
        run_in_world(options_, [&](env::Env& env) { return ask_all(env, *uri); });
    if (!ran) return std::unexpected(ran.error());
    say(options_.json ? config::json_text(json_of(services_)) : text_of(services_));
    return kExitOk;
  }

 private:
  task::Task<Attempt<void>> ask_all(env::Env& env, const fabric::Uri& uri) {
    std::vector<env::Address> wanted = {uri.paths.front()};
    for (size_t i = 0; i < wanted.size(); ++i) {
      const env::Address address = wanted[i];
      Result<fabric::DiscoveryLog> log =
          co_await fabric::discover(env, address, uri.options, env.stop_token());
      DiscoveredService service{.address = address};
      if (log) {
        service.log = std::move(*log);
        if (follow_) note_referrals(service.log, wanted);
      } else if (i == 0) {
        co_return std::unexpected(server::cannot_connect(log.error(), uri, address));
      } else {
        service.problem = server::cannot_connect(log.error(), uri, address).text;
      }
      services_.push_back(std::move(service));
    }
    co_return Attempt<void>{};
  }

  static void note_referrals(const fabric::DiscoveryLog& log, std::vector<env::Address>& wanted) {
    for (const fabric::DiscoveryRecord& record : log.records) {
      if (record.type != nvme::SubsystemType::kReferral) continue;
      const std::optional<env::Address> address = record.tcp_address();
      if (!address || wanted.size() == kServicesMax) continue;
      if (std::ranges::find(wanted, *address) == wanted.end()) wanted.push_back(*address);
    }
  }

  NvmeOptions options_;
  std::string uri_;
  bool follow_ = false;
  std::vector<DiscoveredService> services_;
};

}  // namespace

std::unique_ptr<Command> make_nvme_discover(CLI::App& app) {
  return std::make_unique<DiscoverCommand>(app);
}

}  // namespace cairn::apps
