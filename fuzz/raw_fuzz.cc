// SPDX-License-Identifier: Apache-2.0
// A box in the simulator against hosts that follow the specification and do all that it allows at
// once: overlapping, fused, aborted, preempted and copied commands, with an oracle of what every
// answer may be (tests/raw/game.h). The input is the seed of a game.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/rng.h"
#include "raw/game.h"
#include "tally.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static cairn::fuzz::Tally tally("NVMe/TCP commands of hosts");
  uint64_t seed = size;
  for (size_t i = 0; i < size; ++i) seed = cairn::mix64(seed ^ bytes[i]);
  cairn::raw_tests::Figures figures;
  cairn::raw_tests::play_game(seed, figures, [seed](const std::string& wrong) {
    std::fprintf(stderr, "%s\nCAIRN_SEED=%llu\n", wrong.c_str(),
                 static_cast<unsigned long long>(seed));
    std::abort();
  });
  // What the hosts themselves expect of a handshake.
  if (testing::Test::HasFailure()) std::abort();
  tally.add(figures.answers);
  return 0;
}
