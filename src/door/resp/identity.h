// SPDX-License-Identifier: Apache-2.0
// Who is who: what the door says of itself, and how clients may be called.
#pragma once

#include <string_view>

#include "door/resp/command.h"

namespace cairn::door::resp {

// The Redis whose commands these are. Clients read it to know what they may ask for.
inline constexpr std::string_view kRedisVersion = "7.0.15";

// False, and an error in the reply: a client cannot be called so.
bool is_client_name(Call& call, std::string_view name);

}  // namespace cairn::door::resp
