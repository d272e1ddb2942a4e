// SPDX-License-Identifier: Apache-2.0
// Names of hosts, where users write them.
#pragma once

#include <string_view>

#include "base/problem.h"

namespace cairn::server {

// Whether a host can have this name. One that is mistyped would let nobody in: the Problem says how
// such names look and where they are found.
Attempt<void> check_host_nqn(std::string_view text);

}  // namespace cairn::server
