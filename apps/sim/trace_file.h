// SPDX-License-Identifier: Apache-2.0
// Traces of requests, as the flash model replays them.
#pragma once

#include <string_view>
#include <vector>

#include "apps/problem.h"
#include "model/flash/workload.h"

namespace cairn::apps {

// Lines of "arrival_ns device lba sectors op", op 1 for a read and 0 for a write, in order of
// arrival. The Problem names the line.
Attempt<std::vector<flash::TimedRequest>> parse_mqsim_trace(std::string_view text);

// Any of the formats: MQSim's, SYSTOR '17, Tencent CBS, MSR Cambridge, Alibaba; told apart by their
// first line. The clock starts with the first request.
Attempt<std::vector<flash::TimedRequest>> parse_trace(std::string_view text);

}  // namespace cairn::apps
