// SPDX-License-Identifier: Apache-2.0
#include "drive/scratch.h"

#include <gtest/gtest.h>

#include <vector>

#include "testing/sim_test.h"

namespace cairn::drive {
namespace {

SIM_TEST(Scratch, ComesFromTheHeapWhenAllBuffersAreOut) {
  std::vector<Buffer> all;
  while (Result<Buffer> buffer = env.buffers().allocate(env.buffers().size_max())) {
    all.push_back(std::move(*buffer));
  }
  {
    Result<Scratch> scratch = Scratch::make(env, env.buffers().size_max());
    CO_ASSERT_TRUE(scratch.has_value());
    EXPECT_EQ(scratch->size(), env.buffers().size_max());
    EXPECT_EQ(env.buffers().heap_in_use(), env.buffers().size_max());
    // It moves as a whole.
    Scratch moved = std::move(*scratch);
    EXPECT_EQ(moved.size(), env.buffers().size_max());
    EXPECT_EQ(scratch->size(), 0U);
  }
  EXPECT_EQ(env.buffers().heap_in_use(), 0U);
  co_return;
}

SIM_TEST(Scratch, IsRefusedWhereACoreHasTakenAllItMay) {
  constexpr size_t kPart = BufferPool::kHeapMax / 4;
  std::vector<Scratch> held;
  for (int i = 0; i < 4; ++i) {
    Result<Scratch> scratch = Scratch::make(env, kPart);
    CO_ASSERT_TRUE(scratch.has_value());
    held.push_back(std::move(*scratch));
  }
  const Result<Scratch> beyond = Scratch::make(env, kPart);
  EXPECT_TRUE(!beyond && beyond.error() == Errc::kLimit);
  // Small ones still find a buffer.
  EXPECT_TRUE(Scratch::make(env, 4096).has_value());
  held.pop_back();
  EXPECT_TRUE(Scratch::make(env, kPart).has_value());
  co_return;
}

}  // namespace
}  // namespace cairn::drive
