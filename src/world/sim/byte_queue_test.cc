// SPDX-License-Identifier: Apache-2.0
#include "world/sim/byte_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace cairn::sim {
namespace {

std::byte byte_at(uint64_t position) {
  return static_cast<std::byte>(position * 0x9e3779b97f4a7c15 >> 56);
}

void append(ByteQueue& queue, size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = byte_at(queue.end() + i);
  queue.append(bytes);
}

bool is_right(Bytes bytes, uint64_t position) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != byte_at(position + i)) return false;
  }
  return true;
}

TEST(ByteQueue, ComesOutAsItWentInWhateverTheSteps) {
  BlockPool pool;
  Rng rng(1);
  {
    ByteQueue queue(pool);
    for (int round = 0; round < 2000; ++round) {
      append(queue, rng.below(40'000));
      std::vector<std::byte> out(rng.below(queue.end() - queue.begin() + 1));
      const uint64_t position = queue.begin();
      queue.take(out);
      ASSERT_TRUE(is_right(out, position));
    }
    EXPECT_GT(queue.end(), 10'000'000u);
  }
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(ByteQueue, PinnedBytesStayUntilUnpinnedInAnyOrder) {
  struct Held {
    ByteQueue::Run run;
    uint64_t position;
  };
  BlockPool pool;
  Rng rng(2);
  {
    ByteQueue queue(pool);
    std::vector<Held> held;
    for (int round = 0; round < 2000; ++round) {
      append(queue, rng.between(1, 10'000));
      const uint64_t position = queue.begin();
      held.push_back({queue.take_pinned(queue.end() - queue.begin()), position});
      while (held.size() > rng.below(20)) {
        std::swap(held[rng.below(held.size())], held.back());
        ASSERT_TRUE(is_right(held.back().run.bytes, held.back().position));
        queue.unpin(*held.back().run.block);
        held.pop_back();
      }
    }
    for (const Held& one : held) queue.unpin(*one.run.block);
  }
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(ByteQueue, FlipChangesOneBitOfOneByte) {
  BlockPool pool;
  ByteQueue queue(pool);
  append(queue, 100'000);
  std::vector<std::byte> skipped(12'345);
  queue.take(skipped);
  queue.flip(77'777, 3);
  std::vector<std::byte> out(100'000 - 12'345);
  queue.take(out);
  out[77'777 - 12'345] ^= std::byte{1 << 3};
  EXPECT_TRUE(is_right(out, 12'345));
}

}  // namespace
}  // namespace cairn::sim
