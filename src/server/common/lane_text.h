// SPDX-License-Identifier: Apache-2.0
// Lanes as people and scripts read them, of a host and of a box.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "fabric/wire/lane_traffic.h"

namespace cairn::server {

// The sizes of caravans that are counted together: "1", "2", "3-4", ... "65+".
inline constexpr std::array<std::string_view, fabric::LaneCounters::kSizes> kCaravanSizes = {
    "1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65+"};

// Sends, messages, bytes, sizes and causes; reads, PDUs and bytes received.
nlohmann::ordered_json json_of(const fabric::LaneTraffic& traffic);

// "0.12", or "-" when nothing was counted.
std::string ratio_text(uint64_t part, uint64_t whole);
// "count 120, idle 3": causes that occurred. "none" if there is none.
std::string causes_text(const fabric::LaneCounters& counters);
// "1: 3, 9-16: 120": sizes that occurred.
std::string sizes_text(const fabric::LaneCounters& counters);

}  // namespace cairn::server
