// SPDX-License-Identifier: Apache-2.0
// A network described in the words of the HPCC reference: a JSON object of its parameters.
#pragma once

#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "model/net/parameters.h"

namespace cairn::plan {

struct HpccConfig {
  net::Parameters parameters;  // in hpcc mode
  net::Picos stop = 0;         // when the reference's run ends
};

// Numbers may be given as text. A key that is missing keeps the reference's value; a setting that
// the model does not have is refused, and so is an unknown key.
Attempt<HpccConfig> parse_hpcc_config(const nlohmann::json& config);

// The bits per second of "10Gbps", "40Mb/s" and the like.
Attempt<uint64_t> hpcc_rate(const nlohmann::json& value);

}  // namespace cairn::plan
