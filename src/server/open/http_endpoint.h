// SPDX-License-Identifier: Apache-2.0
// Drives behind HTTP as a user names them.
#pragma once

#include <string_view>

#include "base/problem.h"
#include "rest/endpoint.h"

namespace cairn::server {

// Whether the text has the right form, without looking anything up.
Attempt<void> check_http(std::string_view text);
// Where such a drive is, its host looked up; may block for that: not inside a world.
Attempt<rest::Endpoint> find_http(std::string_view text);

}  // namespace cairn::server
