// SPDX-License-Identifier: Apache-2.0
#include "server/open/store_uri.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/percent.h"
#include "base/words.h"
#include "rack/types.h"

namespace cairn::server {

namespace {

constexpr size_t kServersMax = 16;

Attempt<std::vector<env::Address>> parse_servers(std::string_view text) {
  std::vector<env::Address> servers;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    Result<env::Address> address = env::Address::parse(one);
    if (!address || address->family == env::Address::Family::kLocal || address->port == 0) {
      return refuse(fmt::format("{} is no address of a server: write one like 127.0.0.1:{}",
                                in_quotes(one), kMetaPort));
    }
    if (servers.size() == kServersMax) {
      return refuse(fmt::format("more than {} servers: name fewer of them", kServersMax));
    }
    servers.push_back(std::move(*address));
    if (comma == std::string_view::npos) return servers;
    text.remove_prefix(comma + 1);
  }
}

Attempt<std::string> parse_value(std::string_view key, std::string_view text) {
  std::optional<std::string> value = percent_decode(text);
  if (!value || value->empty() || value->find('\0') != std::string::npos) {
    return refuse(fmt::format("{}={} has no value that can be used", key, in_quotes(text)));
  }
  // A key in the address would be seen by everybody who lists processes.
  if (value->starts_with("NVMeTLSkey-1:")) {
    return refuse(
        fmt::format("{} takes the name of a file with the key, not the key itself: put the key "
                    "into a file, and make another, for this one is known now",
                    key));
  }
  return std::move(*value);
}

// Where a kind of store has such an option.
std::string* option_of(StoreUri& uri, std::string_view key) {
  if (key == "name") return &uri.name;
  if (uri.kind == StoreUri::Kind::kServed) return key == "tls_key" ? &uri.tls_key : nullptr;
  if (key == "ca") return &uri.ca;
  if (key == "cert") return &uri.cert;
  return key == "key" ? &uri.key : nullptr;
}

const char* form_of(StoreUri::Kind kind) {
  return kind == StoreUri::Kind::kServed ? "meta://ADDR:PORT?tls_key=FILE&name=NAME"
                                         : "etcd://ADDR:PORT?ca=FILE&cert=FILE&key=FILE";
}

Attempt<void> take_option(std::string_view pair, StoreUri& uri) {
  const size_t equals = std::min(pair.find('='), pair.size());
  const std::string_view key = pair.substr(0, equals);
  std::string* const into = option_of(uri, key);
  if (into == nullptr) {
    return refuse(fmt::format("{} is no option of such an address: write {}", in_quotes(pair),
                              form_of(uri.kind)));
  }
  if (!into->empty()) return refuse(fmt::format("{} is there twice: leave one out", key));
  Attempt<std::string> value = parse_value(key, pair.substr(std::min(equals + 1, pair.size())));
  if (!value) return std::unexpected(value.error());
  *into = std::move(*value);
  return {};
}

Attempt<void> check_served(const StoreUri& uri) {
  if (uri.tls_key.empty() != uri.name.empty()) {
    return refuse(
        "tls_key=FILE and name=NAME go together: whose key it is says the file of --tls-keys of "
        "'cairn rack serve'");
  }
  if (uri.name.empty()) return {};
  if (const Result<void> fits = rack::check_client_name(uri.name); !fits) {
    return refuse(fmt::format("name={}: {}", in_quotes(uri.name), fits.error().what()));
  }
  return {};
}

Attempt<void> check_etcd(const StoreUri& uri) {
  if (uri.cert.empty() != uri.key.empty()) {
    return refuse("cert=FILE and key=FILE go together: the certificate, and the key it is for");
  }
  if (uri.ca.empty() && !(uri.cert.empty() && uri.name.empty())) {
    return refuse("without ca=FILE, who signed etcd's certificate, nothing is encrypted: add it");
  }
  return {};
}

Attempt<void> take_options(std::string_view query, StoreUri& uri) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (Attempt<void> taken = take_option(pair, uri); !taken) return taken;
  }
  return uri.kind == StoreUri::Kind::kServed ? check_served(uri) : check_etcd(uri);
}

}  // namespace

Attempt<StoreUri> StoreUri::parse(std::string_view text) {
  StoreUri uri;
  constexpr std::string_view kFolderStart = "rocks:";
  if (text.starts_with(kFolderStart) && text.size() > kFolderStart.size()) {
    uri.kind = Kind::kFolder;
    uri.folder = text.substr(kFolderStart.size());
    return uri;
  }
  for (const auto& [start, kind] :
       {std::pair<std::string_view, Kind>{"meta://", Kind::kServed}, {"etcd://", Kind::kEtcd}}) {
    if (!text.starts_with(start)) continue;
    std::string_view rest = text.substr(start.size());
    const size_t mark = std::min(rest.find('?'), rest.size());
    Attempt<std::vector<env::Address>> servers = parse_servers(rest.substr(0, mark));
    if (!servers) return std::unexpected(servers.error());
    uri.kind = kind;
    uri.servers = std::move(*servers);
    rest.remove_prefix(std::min(mark + 1, rest.size()));
    if (const Attempt<void> taken = take_options(rest, uri); !taken) {
      return std::unexpected(taken.error());
    }
    return uri;
  }
  return refuse(
      fmt::format("{} is no metadata store: write meta://127.0.0.1:{}, etcd://127.0.0.1:2379 or "
                  "rocks:/a/folder",
                  in_quotes(text), kMetaPort));
}

}  // namespace cairn::server
