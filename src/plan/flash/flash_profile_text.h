// SPDX-License-Identifier: Apache-2.0
// A drive as a profile file.
#pragma once

#include <string>
#include <string_view>

#include "model/flash/parameters.h"

namespace cairn::plan {

// Every key of a profile with its value, so that parse_flash_profile() gives the same drive, with
// its first stream alone: profiles have one.
std::string flash_profile_text(const flash::Parameters& parameters, std::string_view name);

}  // namespace cairn::plan
