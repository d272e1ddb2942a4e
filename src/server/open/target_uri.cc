// SPDX-License-Identifier: Apache-2.0
#include "server/open/target_uri.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/units.h"
#include "base/words.h"
#include "server/open/key_file.h"

namespace cairn::server {

namespace {

constexpr std::string_view kScheme = "nvme-tcp://";
constexpr std::string_view kPath = "path=";
// Somebody waits for the command: it gives up on a target that is gone sooner than a service would.
constexpr Duration kLossTimeout = 30_s;

// "box1" of "box1:4420"; empty when what stands there is an address.
std::string_view name_in(std::string_view host) {
  if (host.starts_with('[')) return {};
  const std::string_view name = host.substr(0, host.find(':'));
  const bool is_ip4 =
      std::ranges::all_of(name, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
  return is_ip4 || name == "localhost" ? std::string_view() : name;
}

Attempt<std::string> resolve_host(std::string_view host, const Resolver& resolver) {
  const std::string_view name = name_in(host);
  if (name.empty()) return std::string(host);
  const auto address = resolver(std::string(name));
  if (!address) {
    return refuse(fmt::format(
        "the host name {} cannot be looked up ({}): check its spelling, or write an IP address",
        in_quotes(name), address.error()));
  }
  return *address + std::string(host.substr(name.size()));
}

Attempt<fabric::Uri> parse(std::string_view text, Needs needs, const Resolver& resolver) {
  const Attempt<std::string> resolved = resolve_names(text, resolver);
  if (!resolved) return std::unexpected(resolved.error());
  auto uri = fabric::Uri::parse(*resolved);
  if (!uri) {
    return refuse(fmt::format("{} is no place: {}; write nvme-tcp://HOST:PORT/NQN?nsid=1",
                              in_quotes(text), uri.error()));
  }
  if (needs != Needs::kDiscovery && uri->is_discovery()) {
    return refuse(
        fmt::format("{} names a discovery service, and a subsystem is needed: add /NQN; 'cairn "
                    "nvme discover nvme-tcp://{}' lists those that are there",
                    in_quotes(text), uri->paths.front().text()));
  }
  return std::move(*uri);
}

}  // namespace

Resolver system_resolver() {
  return [](const std::string& name) -> std::expected<std::string, std::string> {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG;
    addrinfo* found = nullptr;
    if (const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &found); error != 0) {
      return std::unexpected(std::string(::gai_strerror(error)));
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &::freeaddrinfo);
    char text[NI_MAXHOST];
    if (::getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) != 0) {
      return std::unexpected(std::string("its address has no text"));
    }
    return found->ai_family == AF_INET6 ? fmt::format("[{}]", text) : std::string(text);
  };
}

Attempt<std::string> resolve_names(std::string_view text, const Resolver& resolver) {
  if (!text.starts_with(kScheme)) return std::string(text);
  std::string_view rest = text.substr(kScheme.size());
  const std::string_view host = rest.substr(0, rest.find_first_of("/?"));
  rest.remove_prefix(host.size());
  Attempt<std::string> resolved = resolve_host(host, resolver);
  if (!resolved) return resolved;
  std::string out = std::string(kScheme) + *resolved;
  const size_t query = std::min(rest.find('?'), rest.size());
  out += rest.substr(0, query);
  rest.remove_prefix(query);
  while (!rest.empty()) {  // a mark and an option
    out += rest.front();
    rest.remove_prefix(1);
    const std::string_view option = rest.substr(0, rest.find('&'));
    rest.remove_prefix(option.size());
    if (!option.starts_with(kPath)) {
      out += option;
      continue;
    }
    resolved = resolve_host(option.substr(kPath.size()), resolver);
    if (!resolved) return resolved;
    out += std::string(kPath) + *resolved;
  }
  return out;
}

Attempt<void> check_target_uri(std::string_view text, Needs needs) {
  const Resolver anything = [](const std::string&) { return std::string("127.0.0.1"); };
  const Attempt<fabric::Uri> uri = parse(text, needs, anything);
  if (!uri) return std::unexpected(uri.error());
  return {};
}

Attempt<fabric::Uri> find_target_uri(std::string_view text, Needs needs) {
  Attempt<fabric::Uri> uri = parse(text, needs, system_resolver());
  if (!uri) return uri;
  name_host_stably(gather_host(), uri->options);
  if (text.find("loss_timeout=") == std::string_view::npos) {
    uri->options.loss_timeout = kLossTimeout;
  }
  if (Attempt<void> loaded = load_credentials(uri->options); !loaded) {
    return std::unexpected(loaded.error());
  }
  return uri;
}

}  // namespace cairn::server
