// SPDX-License-Identifier: Apache-2.0
#include "apps/common/http.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "apps/common/output.h"
#include "base/bytes.h"
#include "base/words.h"
#include "server/common/reach.h"
#include "server/monitor/access.h"
#include "server/monitor/http_address.h"
#include "server/open/key_file.h"

namespace cairn::apps {

namespace {

// So many letters of base64 are 96 bits.
constexpr size_t kTokenMin = 16;

}  // namespace

Attempt<std::optional<crypto::Digest>> read_http_token(const std::string& path) {
  if (path.empty()) return std::optional<crypto::Digest>();
  const Attempt<server::Password> token = server::read_password_file(path);
  if (!token) return std::unexpected(token.error());
  if (token->size() < kTokenMin) {
    return refuse(
        fmt::format("the token in {} has {} characters, and could be guessed: make one "
                    "with 'openssl rand -base64 24 > FILE'",
                    in_quotes(path), token->size()));
  }
  return server::digest_of_token(as_text(token->bytes()));
}

void add_http(CLI::App& app, std::vector<env::Address>& into, std::string& token) {
  add_text(app, "--http-token FILE", token,
           "/api/v1 for those alone who show what is in this file, at other addresses than this "
           "machine's too");
  add_values(app, "--http ADDRESS",
             "metrics at /metrics, health at /healthz and JSON at /api/v1 for whoever reaches a "
             "PORT of this machine, ADDR:PORT or unix:SOCKET; several allowed",
             [&into](const std::string& text) -> Attempt<void> {
               Attempt<env::Address> at = server::parse_http_address(text);
               if (!at) return std::unexpected(at.error());
               if (at->family == env::Address::Family::kLocal) {
                 std::error_code error;
                 const auto whole = std::filesystem::absolute(at->path, error).lexically_normal();
                 if (!error) at->path = whole.string();
               }
               into.push_back(std::move(*at));
               return {};
             });
}

void greet_http(const std::vector<env::Address>& addresses, std::vector<std::string>& sockets) {
  for (const env::Address& at : addresses) {
    say(fmt::format("metrics and health at {}\n", at.text()));
    if (at.family == env::Address::Family::kLocal) {
      sockets.push_back(at.path);
      say(fmt::format("  curl --unix-socket {} http://cairn/metrics\n", at.path));
      continue;
    }
    const server::Reach near = server::reach(at);
    const bool is_six = near.host.find(':') != std::string::npos;
    say(fmt::format("  curl http://{}:{}/metrics\n", is_six ? "[" + near.host + "]" : near.host,
                    near.port));
  }
}

}  // namespace cairn::apps
