// SPDX-License-Identifier: Apache-2.0
#include "apps/common/http.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "apps/common/output.h"
#include "server/common/reach.h"
#include "server/monitor/http_address.h"

namespace cairn::apps {

void add_http(CLI::App& app, std::vector<env::Address>& into) {
  add_values(app, "--http ADDRESS",
             "metrics at /metrics and health at /healthz for whoever reaches a PORT of this "
             "machine, ADDR:PORT or unix:SOCKET; several allowed",
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
