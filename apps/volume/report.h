// SPDX-License-Identifier: Apache-2.0
// Pools and volumes for people and programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "arbiter/views.h"
#include "base/problem.h"

namespace cairn::apps {

nlohmann::ordered_json drive_json(const arbiter::DriveView& drive, uint64_t extent_bytes);
nlohmann::ordered_json pool_json(const arbiter::PoolView& pool);
std::string pool_text(const arbiter::PoolView& pool);
std::string pool_summary(const arbiter::PoolView& pool);

nlohmann::ordered_json volume_json(const arbiter::VolumeView& volume);
nlohmann::ordered_json detail_json(const arbiter::VolumeDetail& detail);
std::string volumes_text(const std::vector<arbiter::VolumeView>& volumes);
// With the score matrices of the last placements, if `why`.
std::string detail_text(const arbiter::VolumeDetail& detail, bool why);

// "weight 1, no floor, no cap", "weight 4, floor 200 MB/s, cap 1000 MB/s".
std::string terms_text(const share::Terms& terms);

// "spread", "pack", or factors with commas between: "used=2,busy=0", the others as for spread.
Attempt<volume::Weights> parse_policy(std::string_view text);

}  // namespace cairn::apps
