// SPDX-License-Identifier: Apache-2.0
// A drive as a user names it.
#pragma once

#include <string_view>

#include "apps/problem.h"
#include "drive/source.h"

namespace cairn::apps {

// As drive::Spec::parse, with the file's whole path: a drive is the same whichever folder it is
// named from.
Attempt<drive::Spec> parse_drive(std::string_view text);

}  // namespace cairn::apps
