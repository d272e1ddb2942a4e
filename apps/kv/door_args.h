// SPDX-License-Identifier: Apache-2.0
// Where a door for the clients of Redis is, as the command line says it.
#pragma once

#include <cstdint>
#include <string>

#include "base/problem.h"
#include "env/address.h"

namespace cairn::apps {

inline constexpr uint16_t kRespPort = 6390;

// "127.0.0.1:6390" or "unix:SOCKET", which becomes a whole path.
Attempt<env::Address> parse_door_address(const std::string& text);

}  // namespace cairn::apps
