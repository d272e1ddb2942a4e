// SPDX-License-Identifier: Apache-2.0
#include "apps/kv/door_args.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/words.h"

namespace cairn::apps {

Attempt<env::Address> parse_door_address(const std::string& text) {
  Result<env::Address> address = env::Address::parse(text);
  if (!address) {
    return refuse(fmt::format("{} is no address: {}; write 127.0.0.1:{} or unix:/run/kv.sock",
                              in_quotes(text), address.error().what(), kRespPort));
  }
  if (address->family == env::Address::Family::kLocal) {
    std::error_code error;
    const auto whole = std::filesystem::absolute(address->path, error).lexically_normal();
    if (!error) address->path = whole.string();
  }
  return std::move(*address);
}

}  // namespace cairn::apps
