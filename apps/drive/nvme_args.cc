// SPDX-License-Identifier: Apache-2.0
#include "apps/drive/nvme_args.h"

#include <fmt/format.h>

#include <utility>

#include "base/words.h"
#include "server/common/access_keys.h"
#include "server/common/default_nqn.h"

namespace cairn::apps {

namespace {

config::Section subsystem_keys(server::BoxSubsystem& subsystem) {
  config::Section keys;
  keys.taken("nqn", [&subsystem](const std::string& text) -> Attempt<void> {
    Attempt<void> named = server::check_subsystem_nqn(text);
    if (named) subsystem.options.nqn = text;
    return named;
  });
  server::add_access_keys(keys, subsystem);
  return keys;
}

Attempt<std::string> default_nqn_of(const std::vector<server::DriveArgs>& drives) {
  std::vector<nvme::NamespaceOptions> served;
  for (const server::DriveArgs& drive : drives) {
    nvme::NamespaceOptions& one = served.emplace_back();
    if (drive.stack == nullptr) {
      one.drive = drive.spec;
    } else {
      one.stack = drive.text;
    }
  }
  return server::make_default_nqn("drives", "", served);
}

}  // namespace

Attempt<void> add_nvme_door(const std::string& text, NvmeArgs& words) {
  Result<env::Address> address = env::Address::parse(text);
  const bool is_local = address && address->family == env::Address::Family::kLocal;
  if (!address || is_local) {
    return refuse(fmt::format("{} is no address: {}; write 127.0.0.1:4420 or [::]:4420",
                              in_quotes(text),
                              is_local ? "a port is needed" : address.error().what()));
  }
  words.at.push_back(std::move(*address));
  return {};
}

void add_nvme_keys(config::Section& root, server::DriveServeOptions& options) {
  root.tables("listener", server::kListenersMax,
              [&options] { return server::listener_keys(options.nvme); });
  root.tables("subsystem", 1, [&options] { return subsystem_keys(options.subsystem); });
}

Attempt<void> take_nvme_args(const NvmeArgs& words, server::DriveServeOptions& options) {
  if (!words.at.empty()) options.nvme.clear();
  for (const env::Address& at : words.at) options.nvme.push_back({.address = at});
  server::BoxSubsystem& subsystem = options.subsystem;
  take_host_args(words.access, subsystem);
  const bool has_hosts = !subsystem.options.allow_any_host || !words.access.tls.empty();
  if (has_hosts && options.nvme.empty()) {
    return refuse(
        "--host, --tls and keys of hosts are about NVMe hosts, and there is no place where they "
        "connect: add --nvme-tcp ADDR:PORT");
  }
  if (Attempt<void> taken = take_tls_args(words.access, "--nvme-tcp", options.nvme); !taken) {
    return taken;
  }
  if (!words.nqn.empty()) subsystem.options.nqn = words.nqn;
  if (!subsystem.options.nqn.empty()) return {};
  Attempt<std::string> nqn = default_nqn_of(options.drives);
  if (!nqn) return std::unexpected(nqn.error());
  subsystem.options.nqn = std::move(*nqn);
  return {};
}

}  // namespace cairn::apps
