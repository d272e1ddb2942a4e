// SPDX-License-Identifier: Apache-2.0
#include "apps/rack/store_uri.h"

#include <fmt/format.h>

#include <utility>

#include "apps/words.h"

namespace cairn::apps {

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
    Attempt<std::vector<env::Address>> servers = parse_servers(text.substr(start.size()));
    if (!servers) return std::unexpected(servers.error());
    uri.kind = kind;
    uri.servers = std::move(*servers);
    return uri;
  }
  return refuse(
      fmt::format("{} is no metadata store: write meta://127.0.0.1:{}, etcd://127.0.0.1:2379 or "
                  "rocks:/a/folder",
                  in_quotes(text), kMetaPort));
}

}  // namespace cairn::apps
