// SPDX-License-Identifier: Apache-2.0
// Profiles of drives: TOML files that say what a drive is made of.
#pragma once

#include <string>
#include <string_view>

#include "base/problem.h"
#include "model/flash/parameters.h"

namespace cairn::plan {

// Every number has its unit in the name of its key or in the value ("16 KiB", "50 us"). The Problem
// names line, column and key.
Attempt<flash::Parameters> parse_flash_profile(std::string_view text);

// A profile that comes with Cairn ("pm1725a"), or a path to a file.
Attempt<flash::Parameters> load_flash_profile(const std::string& name_or_path);

// Names of the profiles that come with Cairn.
std::vector<std::string> flash_profile_names();

}  // namespace cairn::plan
