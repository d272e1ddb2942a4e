// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/access.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "crypto/secret.h"
#include "server/common/reach.h"
#include "server/control/control_format.h"

namespace cairn::server {

namespace {

constexpr std::string_view kBearer = "Bearer ";
// Addresses that are remembered; the one that failed first makes room.
constexpr size_t kHostsMax = 1024;

std::string host_of(const env::Address& peer) {
  return peer.family == env::Address::Family::kLocal ? "local" : reach(peer).host;
}

// "127.0.0.1:9640", "[::1]:9640", "localhost".
bool names_this_machine(std::string_view host) {
  if (host.starts_with('[')) return host.starts_with("[::1]");
  const std::string_view name = host.substr(0, host.rfind(':'));
  if (name == "localhost") return true;
  return name.starts_with("127.") &&
         std::ranges::all_of(name, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

}  // namespace

crypto::Digest digest_of_token(std::string_view token) {
  return crypto::digest(crypto::Hash::kSha256, {as_bytes(token)});
}

http::Page api_problem(http::Status status, std::string_view sentence) {
  const Json json = {{"schema_version", 1}, {"error", sentence}};
  return {.status = status,
          .type = "application/json",
          .body = json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n"};
}

bool ApiAccess::is_limited(const std::string& host) {
  const auto found = failures_.find(host);
  if (found == failures_.end()) return false;
  if (env_.now() - found->second.since < kWindow) return found->second.count >= kFailuresMax;
  failures_.erase(found);
  return false;
}

void ApiAccess::note_failure(const std::string& host) {
  if (failures_.size() >= kHostsMax && !failures_.contains(host)) {
    failures_.erase(std::ranges::min_element(failures_, {},
                                             [](const auto& each) { return each.second.since; }));
  }
  Failures& mine = failures_.try_emplace(host, Failures{.since = env_.now()}).first->second;
  ++mine.count;
}

std::optional<http::Page> ApiAccess::judge(const http::Asked& asked) {
  using http::Status;
  if (asked.local.family == env::Address::Family::kLocal) return std::nullopt;
  if (!token_) {
    if (!is_of_this_machine(asked.local)) {
      return api_problem(Status::kForbidden,
                         "whoever reaches this address could read it: start the process with "
                         "--http-token FILE, or ask at an address of this machine");
    }
    if (names_this_machine(asked.host)) return std::nullopt;
    return api_problem(Status::kForbidden,
                       "the host that was asked for is not this machine: ask for 127.0.0.1");
  }
  const std::string host = host_of(asked.peer);
  if (is_limited(host)) {
    return api_problem(Status::kTooManyRequests,
                       "too many wrong tokens came from there: ask again in a minute");
  }
  const std::string_view shown = asked.authorization;
  if (shown.starts_with(kBearer)) {
    const crypto::Digest digest = digest_of_token(shown.substr(kBearer.size()));
    if (crypto::is_equal(digest.bytes(), token_->bytes())) return std::nullopt;
    note_failure(host);
  }
  return api_problem(Status::kUnauthorized,
                     "show the token of --http-token: 'Authorization: Bearer TOKEN'");
}

}  // namespace cairn::server
