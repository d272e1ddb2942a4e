// SPDX-License-Identifier: Apache-2.0
#include "world/sim/durability.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"

namespace cairn::sim {
namespace {

constexpr uint32_t kBlock = 4096;

TEST(DurableStore, FlushCoversWhatWasWrittenBeforeItStarted) {
  Rng rng(1);
  const std::vector<std::byte> one(kBlock, std::byte{1});
  const std::vector<std::byte> two(kBlock, std::byte{2});
  for (int run = 0; run < 20; ++run) {
    DurableStore store;
    store.write_block(0, Bytes(one), false, rng);
    const DurableStore::Mark mark = store.mark();
    store.write_block(0, Bytes(two), false, rng);
    store.flush(mark, rng);
    EXPECT_EQ(store.volatile_block_count(), 1u);
    store.lose_power(0, rng);
    std::byte first[1];
    store.read(0, first);
    EXPECT_EQ(static_cast<int>(first[0]), 1) << "at least the flushed contents, not zeroes";
  }
}

TEST(DurableStore, AnyVersionSinceTheLastFlushMaySurvive) {
  Rng rng(1);
  std::vector<int> seen(4);
  for (int run = 0; run < 200; ++run) {
    DurableStore store;
    for (uint8_t version = 1; version <= 3; ++version) {
      const std::vector<std::byte> image(kBlock, std::byte{version});
      store.write_block(0, Bytes(image), false, rng);
    }
    store.lose_power(0.25, rng);
    std::byte first[1];
    store.read(0, first);
    ++seen[static_cast<size_t>(first[0])];
  }
  for (const int count : seen) EXPECT_GT(count, 10);
}

TEST(DurableStore, WhatAFailedFlushForgotOnlyANewWriteMakesDurable) {
  Rng rng(1);
  const std::vector<std::byte> image(kBlock, std::byte{1});
  DurableStore store;
  for (uint64_t i = 0; i < 100; ++i) store.write_block(i * kBlock, Bytes(image), false, rng);
  store.fail_flush(store.mark(), rng);
  const size_t left = store.volatile_block_count();
  EXPECT_GT(left, 20u);
  EXPECT_LT(left, 80u);
  store.flush(store.mark(), rng);
  EXPECT_EQ(store.volatile_block_count(), left) << "a later flush does not help";
  for (uint64_t i = 0; i < 100; ++i) store.write_block(i * kBlock, Bytes(image), false, rng);
  store.flush(store.mark(), rng);
  EXPECT_EQ(store.volatile_block_count(), 0u);
}

}  // namespace
}  // namespace cairn::sim
