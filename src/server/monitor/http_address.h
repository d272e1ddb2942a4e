// SPDX-License-Identifier: Apache-2.0
// Where metrics and health can be looked at, as users write it.
#pragma once

#include <string>

#include "base/problem.h"
#include "env/address.h"

namespace cairn::server {

// "9640", a port of this machine alone; "10.0.0.1:9640"; "unix:SOCKET".
Attempt<env::Address> parse_http_address(const std::string& text);

}  // namespace cairn::server
