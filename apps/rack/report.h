// SPDX-License-Identifier: Apache-2.0
// A rack's offers and drives as commands print them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rack/billboard.h"
#include "rack/types.h"

namespace cairn::apps {

nlohmann::ordered_json board_json(const rack::Board& board);
std::string board_text(const rack::Board& board, uint64_t now_ms);

// With the stack that serves it.
nlohmann::ordered_json drive_json(const rack::DriveRecord& drive);
std::string drives_text(const std::vector<rack::DriveRecord>& drives);

}  // namespace cairn::apps
