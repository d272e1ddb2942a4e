// SPDX-License-Identifier: Apache-2.0
#include "apps/drive/nvme_words.h"

#include <fmt/format.h>

#include <utility>

#include "apps/box/access_keys.h"
#include "apps/box/default_nqn.h"
#include "apps/words.h"

namespace cairn::apps {

namespace {

Section subsystem_keys(BoxSubsystem& subsystem) {
  Section keys;
  keys.taken("nqn", [&subsystem](const std::string& text) -> Attempt<void> {
    Attempt<void> named = check_subsystem_nqn(text);
    if (named) subsystem.options.nqn = text;
    return named;
  });
  add_access_keys(keys, subsystem);
  return keys;
}

Attempt<std::string> default_nqn_of(const std::vector<DriveWords>& drives) {
  std::vector<nvme::NamespaceOptions> served;
  for (const DriveWords& drive : drives) {
    nvme::NamespaceOptions& one = served.emplace_back();
    if (drive.stack == nullptr) {
      one.drive = drive.spec;
    } else {
      one.stack = drive.text;
    }
  }
  return make_default_nqn("drives", "", served);
}

}  // namespace

Attempt<void> add_nvme_door(const std::string& text, NvmeWords& words) {
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

void add_nvme_keys(Section& root, DriveServeOptions& options) {
  root.tables("listener", kListenersMax, [&options] { return listener_keys(options.nvme); });
  root.tables("subsystem", 1, [&options] { return subsystem_keys(options.subsystem); });
}

Attempt<void> take_nvme_words(const NvmeWords& words, DriveServeOptions& options) {
  if (!words.at.empty()) options.nvme.clear();
  for (const env::Address& at : words.at) options.nvme.push_back({.address = at});
  BoxSubsystem& subsystem = options.subsystem;
  take_host_words(words.access, subsystem);
  const bool has_hosts = !subsystem.options.allow_any_host || !words.access.tls.empty();
  if (has_hosts && options.nvme.empty()) {
    return refuse(
        "--host, --tls and keys of hosts are about NVMe hosts, and there is no place where they "
        "connect: add --nvme-tcp ADDR:PORT");
  }
  if (Attempt<void> taken = take_tls_words(words.access, "--nvme-tcp", options.nvme); !taken) {
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
