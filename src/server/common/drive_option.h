// SPDX-License-Identifier: Apache-2.0
// A drive as a user names it.
#pragma once

#include <string_view>

#include "base/problem.h"
#include "drive/source.h"

namespace cairn::server {

// As drive::Spec::parse, with whole paths: a drive is the same whichever folder it is named from.
// The profile of a modelled drive is loaded and has room for the size.
Attempt<drive::Spec> parse_drive(std::string_view text);

}  // namespace cairn::server
