// SPDX-License-Identifier: Apache-2.0
// Games, seed by seed. fuzz/raw_fuzz.cc plays them under AddressSanitizer.
//
//   CAIRN_SEEDS=100000 build/tests/raw/raw_fuzz_test --gtest_filter='RawFuzz*'
#include <gtest/gtest.h>

#include <string>

#include "raw/game.h"
#include "testing/worlds/seeds.h"

namespace cairn::raw_tests {
namespace {

TEST(RawFuzz, EveryAnswerIsRightAndEveryCommandAnswered) {
  Figures all;
  for (const uint64_t seed : conformance::seeds(200)) {
    play_game(seed, all, [seed](const std::string& wrong) {
      ADD_FAILURE() << wrong << "\nCAIRN_SEED=" << seed;
    });
    if (HasFailure()) return;
  }
  EXPECT_GT(all.answers, 1000u);
  EXPECT_GT(all.fences, 0u);
  EXPECT_GT(all.aborts, 0u);
  RecordProperty("answers", std::to_string(all.answers));
}

}  // namespace
}  // namespace cairn::raw_tests
