// SPDX-License-Identifier: Apache-2.0
// A game: hosts that use everything NVMe/TCP allows at the same time over the same blocks, against
// a box with few buffers, all of it drawn from a seed. Every answer is right, every command is
// answered, no connection ends, and who is fenced off writes nothing afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace cairn::raw_tests {

// Of all games that were played.
struct Figures {
  uint64_t answers = 0;
  uint64_t fences = 0;
  uint64_t aborts = 0;
};

// `on_wrong` hears what went wrong at once, before the game is cleared away: what is under way then
// does not end in good order. False: it heard something.
bool play_game(uint64_t seed, Figures& figures,
               const std::function<void(const std::string&)>& on_wrong);

}  // namespace cairn::raw_tests
