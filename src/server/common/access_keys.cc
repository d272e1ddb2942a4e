// SPDX-License-Identifier: Apache-2.0
#include "server/common/access_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/duration.h"
#include "base/words.h"
#include "nvme/auth/auth_message.h"
#include "nvme/format/nqn.h"
#include "server/common/host_nqn.h"

namespace cairn::server {

namespace {

Attempt<void> take_address(const std::string& text, env::Address& into) {
  Result<env::Address> address = env::Address::parse(text);
  if (!address || address->family == env::Address::Family::kLocal) {
    return refuse(
        fmt::format("{} is no address: write 127.0.0.1:4420 or [::]:4420", in_quotes(text)));
  }
  into = std::move(*address);
  return {};
}

Attempt<void> take_host_nqn(const std::string& text, std::vector<std::string>& into) {
  if (Attempt<void> named = check_host_nqn(text); !named) return named;
  into.push_back(text);
  return {};
}

// A host with keys: on the list of those that may connect, and it has to prove itself.
config::Section host_keys(SubsystemConfig& subsystem) {
  const auto host = std::make_shared<HostOptions>();
  config::Section keys;
  keys.text("nqn", host->nqn).required();
  keys.text("key", host->key);
  keys.text("controller_key", host->controller_key);
  keys.text("tls_key", host->tls_key);
  keys.whole([&subsystem, host]() -> Attempt<void> {
    const auto same = [&host](const HostOptions& other) { return other.nqn == host->nqn; };
    if (std::ranges::any_of(subsystem.hosts, same)) {
      return refuse(fmt::format("{} is there twice: give each host one key", in_quotes(host->nqn)));
    }
    if (host->key.empty() && host->tls_key.empty()) {
      return refuse(
          "a host needs a key or a tls_key: name the file, or put the host's NQN into 'hosts'");
    }
    if (host->key.empty() && !host->controller_key.empty()) {
      return refuse("controller_key needs key too: a box proves itself to a host that does");
    }
    subsystem.options.allow_any_host = false;
    Attempt<void> taken = take_host_nqn(host->nqn, subsystem.options.hosts);
    if (taken) subsystem.hosts.push_back(*host);
    return taken;
  });
  return keys;
}

// A list of names that replaces the usual one.
template <class T>
void add_means(config::Section& keys, const char* name, std::vector<T>& into,
               std::optional<T> (*parse)(std::string_view), const char* known) {
  keys.taken_list(
      name, 16, [&into] { into.clear(); },
      [&into, parse, known](const std::string& text) -> Attempt<void> {
        const std::optional<T> value = parse(text);
        if (!value) return refuse(fmt::format("{} is not one of {}", in_quotes(text), known));
        into.push_back(*value);
        return {};
      });
}

}  // namespace

Attempt<void> check_subsystem_nqn(const std::string& text) {
  if (nvme::is_nqn(text) && text != nvme::kDiscoveryNqn) return {};
  return refuse(
      fmt::format("{} is no name for a subsystem: write one like "
                  "nqn.2026-11.io.cairn:NAME",
                  in_quotes(text)));
}

Attempt<bool> parse_tls(const std::string& text) {
  if (text == "required" || text == "refused") return text == "required";
  return refuse(fmt::format("takes required or refused, not {}", in_quotes(text)));
}

config::Section listener_keys(std::vector<ListenerOptions>& listeners) {
  ListenerOptions& listener = listeners.emplace_back();
  config::Section keys;
  keys.taken("address",
             [&listener](const std::string& text) { return take_address(text, listener.address); })
      .required();
  keys.taken("advertise", [&listener](const std::string& text) {
    return take_address(text, listener.advertise);
  });
  keys.taken("tls", [&listener](const std::string& text) -> Attempt<void> {
    const Attempt<bool> tls = parse_tls(text);
    if (tls) listener.tls = *tls;
    return tls ? Attempt<void>() : std::unexpected(tls.error());
  });
  return keys;
}

void add_access_keys(config::Section& keys, SubsystemConfig& subsystem) {
  nvme::SubsystemOptions& options = subsystem.options;
  keys.taken_list(
      "hosts", kHostsMax, [&options] { options.allow_any_host = false; },
      [&options](const std::string& text) { return take_host_nqn(text, options.hosts); });
  keys.tables("host", kHostsMax, [&subsystem] { return host_keys(subsystem); });
  add_means(keys, "hashes", subsystem.means.hashes, nvme::parse_auth_hash,
            "sha256, sha384, sha512");
  add_means(keys, "dh_groups", subsystem.means.groups, nvme::parse_auth_group,
            "null, ffdhe2048, ffdhe3072, ffdhe4096, ffdhe6144, ffdhe8192");
  keys.taken("authentication_timeout", [&subsystem](const std::string& text) -> Attempt<void> {
    const Attempt<Duration> timeout = parse_duration(text);
    if (!timeout) return std::unexpected(timeout.error());
    subsystem.authentication_timeout = *timeout;
    return {};
  });
  keys.whole([&subsystem]() -> Attempt<void> {
    if (!subsystem.means.hashes.empty() && !subsystem.means.groups.empty()) return {};
    return refuse("hashes and dh_groups need at least one name each");
  });
}

}  // namespace cairn::server
