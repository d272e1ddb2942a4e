// SPDX-License-Identifier: Apache-2.0
#include "testing/stack/block_model.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace cairn::stack {
namespace {

TEST(BlockModel, AChangeMayShowFromItsBeginAndMustFromItsSuccess) {
  BlockModel model(1);
  model.begin(0, 5);
  EXPECT_TRUE(model.read(0, 0, false));
  EXPECT_TRUE(model.read(0, 5, false));
  EXPECT_FALSE(model.read(0, 6, false));
  model.succeeded(0, false);
  EXPECT_FALSE(model.read(0, 0, true));
  EXPECT_TRUE(model.read(0, 5, true));
}

TEST(BlockModel, AFailedChangeIsDecidedByTheFirstRead) {
  BlockModel model(1);
  model.begin(0, 5);
  EXPECT_FALSE(model.is_certain(0));
  EXPECT_TRUE(model.read(0, 0, true));
  EXPECT_FALSE(model.read(0, 5, true));
}

TEST(BlockModel, ACrashTakesWhatWasNotFlushed) {
  BlockModel model(3);
  for (size_t i = 0; i < 2; ++i) {
    model.begin(i, 7);
    model.succeeded(i, false);
  }
  const auto flush = model.flush_begins();
  model.begin(1, 8);
  model.succeeded(1, false);
  model.begin(2, 9);
  model.succeeded(2, true);
  model.flush_done(flush);
  EXPECT_FALSE(model.read_after_crash(0, 0));
  EXPECT_TRUE(model.read_after_crash(0, 7));
  EXPECT_TRUE(model.read_after_crash(1, 7));
  EXPECT_FALSE(model.read(1, 8, true));
  EXPECT_FALSE(model.read_after_crash(2, 0));
}

TEST(BlockModel, WhatAKilledProgramLeftMayStillGo) {
  BlockModel model(2);
  model.begin(0, 7);
  model.succeeded(0, false);
  model.begin(1, 8);
  model.killed();
  EXPECT_TRUE(model.read(0, 7, true));
  EXPECT_FALSE(model.read(0, 0, true));
  EXPECT_TRUE(model.read(1, 8, true));
  EXPECT_FALSE(model.read(1, 0, true));
  EXPECT_TRUE(model.read_after_crash(0, 0));
  EXPECT_TRUE(model.read_after_crash(1, 0));
}

TEST(BlockModel, AFlushCoversWhatItMayThoughAnotherFailedMeanwhile) {
  BlockModel model(1);
  for (const uint64_t value : {7, 8}) {
    model.begin(0, value);
    model.succeeded(0, false);
  }
  const auto flush = model.flush_begins();
  model.begin(0, 9);
  model.succeeded(0, false);
  model.lose_certainty();
  model.flush_done(flush);
  EXPECT_FALSE(model.read(0, 7, false));
  EXPECT_TRUE(model.read(0, 8, false));
  EXPECT_TRUE(model.read(0, 9, false));
}

}  // namespace
}  // namespace cairn::stack
