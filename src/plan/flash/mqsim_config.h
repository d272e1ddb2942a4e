// SPDX-License-Identifier: Apache-2.0
// A drive described in the words of the MQSim reference: a JSON object of its parameters.
#pragma once

#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "model/flash/parameters.h"

namespace cairn::plan {

// The drive in `mqsim` mode. Numbers may be given as text, as the reference writes them; a key that
// is missing keeps the reference's value, an unknown one is refused.
Attempt<flash::Parameters> parameters_from_mqsim(const nlohmann::json& config);

// The same of a file. The Problem names it.
Attempt<flash::Parameters> load_mqsim_config(const std::string& path);

// WRITE_CACHE, READ_CACHE, WRITE_READ_CACHE, TURNED_OFF.
Attempt<flash::CacheMode> cache_mode_from_mqsim(const std::string& name);

}  // namespace cairn::plan
