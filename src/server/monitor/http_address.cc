// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/http_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/words.h"

namespace cairn::server {

Attempt<env::Address> parse_http_address(const std::string& text) {
  const bool is_port =
      !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  Result<env::Address> at = env::Address::parse(is_port ? "127.0.0.1:" + text : text);
  if (at) return std::move(*at);
  return refuse(fmt::format("{} is no address: {}; write 9640, 10.0.0.1:9640 or unix:SOCKET",
                            in_quotes(text), at.error().what()));
}

}  // namespace cairn::server
