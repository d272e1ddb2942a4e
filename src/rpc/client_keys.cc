// SPDX-License-Identifier: Apache-2.0
#include "rpc/client_keys.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::rpc {

const char* text(Role role) { return role == Role::kWriter ? "writer" : "reader"; }

Result<void> ClientKeys::add(NamedKey key, Role role) {
  if (has_name(key.name)) return fail(Errc::kExists, "a name for the second time");
  const std::string identity = key.identity;
  const bool is_new = keys_.emplace(identity, Known{std::move(key), role}).second;
  if (!is_new) return fail(Errc::kExists, "a key for the second time");
  return {};
}

bool ClientKeys::has_name(std::string_view name) const {
  return std::ranges::any_of(keys_, [&](const auto& each) { return each.second.key.name == name; });
}

Result<tls::Psk> ClientKeys::choose(const std::vector<std::string>& identities) const {
  for (const std::string& identity : identities) {
    const auto found = keys_.find(identity);
    if (found != keys_.end()) return found->second.key.psk();
  }
  return fail(Errc::kDenied, "no key of that name");
}

KnownClient ClientKeys::client_of(const std::string& identity) const {
  const auto found = keys_.find(identity);
  CHECK(found != keys_.end(), "the identity is one that choose() gave");
  return {.name = found->second.key.name, .role = found->second.role};
}

}  // namespace cairn::rpc
