// SPDX-License-Identifier: Apache-2.0
// Both layouts of a virtqueue against a driver that is honest, one that is not, and deaths of the
// device between any two steps.
#include "door/vhost_user/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "door/vhost_user/driver_ring.h"
#include "door/vhost_user/inflight_format.h"
#include "door/vhost_user/virtio_format.h"
#include "env/shared_word.h"
#include "testing/test_core.h"

namespace cairn::door::vhost_user {
namespace {

constexpr size_t kMemory = 256UL * 1024;
constexpr uint64_t kBase = 0x10'0000;     // of guest memory
constexpr uint64_t kTables = 128 * 1024;  // where indirect tables begin

class HeapMemory final : public env::SharedMemory {
 public:
  explicit HeapMemory(size_t size) : room_(size + 4096) {
    const auto at = reinterpret_cast<uintptr_t>(room_.data());
    bytes_ = MutableBytes(room_).subspan(align_up(at, 4096) - at, size);
  }

 private:
  std::vector<std::byte> room_;
};

struct Shape {
  bool is_packed = false;
  bool has_event_index = false;
  uint16_t size = 8;
};

class RingTest : public testing::TestWithParam<Shape> {
 protected:
  RingTest() {
    auto memory = std::make_unique<HeapMemory>(kMemory);
    bytes_ = memory->bytes();
    EXPECT_TRUE(guest_.add(kBase, std::move(memory)).has_value());
    notes_.resize(inflight_region_size(shape().size, shape().is_packed));
    make_driver();
    make_device();
  }

  const Shape& shape() const { return GetParam(); }
  void make_driver() {
    driver_ = DriverRing::make({.size = shape().size,
                                .is_packed = shape().is_packed,
                                .has_event_index = shape().has_event_index,
                                .memory = bytes_,
                                .address = kBase});
  }
  RingOptions options() {
    const DriverRingPlace& place = driver_->place();
    const uint16_t begin = shape().is_packed ? kWrapBit : 0;
    return {.size = shape().size,
            .descriptors = place.descriptors,
            .driver = place.driver,
            .device = place.device,
            .is_packed = shape().is_packed,
            .has_event_index = shape().has_event_index,
            .has_indirect = true,
            .base = {.available = begin, .used = begin},
            .inflight = notes_,
            .used_log_address = 0,
            .log = nullptr};
  }
  // A new process, with what outlives the old one.
  void make_device() {
    Result<std::unique_ptr<Ring>> ring = Ring::make(options(), guest_);
    ASSERT_TRUE(ring.has_value()) << ring.error().text();
    ring_ = std::move(*ring);
  }

  bool add(uint64_t token, size_t segments = 2, bool in_table = false) {
    std::vector<Segment> list;
    for (size_t i = 0; i < segments; ++i) {
      list.push_back({.address = kBase + token, .length = 512, .is_writable = i > 0});
    }
    const uint64_t place = kTables + (token % 256) * 512;
    const DriverRing::Table table{.bytes = bytes_.subspan(place, 512), .address = kBase + place};
    return driver_->add(list, token, in_table ? &table : nullptr);
  }
  // The token of a chain is where its first segment is.
  static uint64_t token_of(const Chain& chain) { return chain.segments.front().address - kBase; }
  Chain take() {
    Chain chain;
    EXPECT_EQ(ring_->take(chain), Ring::Got::kChain);
    return chain;
  }
  void expect_nothing() {
    Chain chain;
    EXPECT_EQ(ring_->take(chain), Ring::Got::kNothing);
  }
  void expect_broken() {
    Chain chain;
    EXPECT_EQ(ring_->take(chain), Ring::Got::kBroken);
    EXPECT_NE(ring_->problem(), nullptr);
    EXPECT_EQ(ring_->take(chain), Ring::Got::kBroken);
  }

  MutableBytes bytes_;
  GuestMemory guest_;
  std::vector<std::byte> notes_;
  std::unique_ptr<DriverRing> driver_;
  std::unique_ptr<Ring> ring_;
};

TEST_P(RingTest, ChainsComeAsTheyWereMadeAndGoInAnyOrder) {
  ASSERT_TRUE(add(1, 2));
  ASSERT_TRUE(add(2, 3));
  const Chain first = take();
  const Chain second = take();
  expect_nothing();
  ASSERT_EQ(first.segments.size(), 2u);
  EXPECT_EQ(first.segments[0].length, 512u);
  EXPECT_FALSE(first.segments[0].is_writable);
  EXPECT_TRUE(first.segments[1].is_writable);
  EXPECT_EQ(token_of(second), 2u);
  ring_->put(second, 77);
  EXPECT_FALSE(driver_->take().has_value()) << "before it is published";
  ring_->publish();
  const auto done = driver_->take();
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->token, 2u);
  EXPECT_EQ(done->written, 77u);
  ring_->put(first, 1);
  ring_->publish();
  EXPECT_EQ(driver_->take()->token, 1u);
  EXPECT_EQ(driver_->outstanding(), 0u);
}

TEST_P(RingTest, IndirectTablesTakeOneDescriptor) {
  for (uint64_t i = 1; i <= shape().size; ++i) ASSERT_TRUE(add(i, 20, true));
  EXPECT_FALSE(add(99, 20, true));
  for (uint64_t i = 1; i <= shape().size; ++i) {
    const Chain chain = take();
    EXPECT_EQ(token_of(chain), i);
    EXPECT_EQ(chain.segments.size(), 20u);
  }
}

TEST_P(RingTest, GoesRoundForLongAndTellsWhenAsked) {
  Rng rng(7);
  uint64_t token = 0;
  std::deque<Chain> out;
  std::set<uint64_t> expected;
  for (int round = 0; round < 20000; ++round) {
    for (uint64_t i = rng.below(4); i > 0; --i) {
      const bool in_table = rng.below(3) == 0;
      if (add(token % 1000 + 1, 1 + rng.below(in_table ? 8 : 3), in_table)) ++token;
    }
    (void)driver_->wants_kick();
    Chain chain;
    while (rng.below(4) != 0 && ring_->take(chain) == Ring::Got::kChain) {
      out.push_back(chain);
    }
    if (rng.below(2) == 0) ring_->pause_kicks();
    if (rng.below(2) == 0 && !ring_->resume_kicks()) {
      // It will be told of the next, and of nothing that it has seen.
      const size_t before = driver_->outstanding();
      if (add(token % 1000 + 1, 1)) {
        ++token;
        EXPECT_TRUE(driver_->wants_kick()) << "round " << round << " after " << before;
      }
    }
    const bool wants_call = !driver_->want_call();
    const size_t count = rng.below(out.size() + 1);
    for (size_t i = 0; i < count; ++i) {
      const size_t which = rng.below(out.size());
      expected.insert(token_of(out[which]));
      ring_->put(out[which], 1);
      out.erase(out.begin() + static_cast<ptrdiff_t>(which));
    }
    const bool calls = ring_->publish();
    if (count > 0 && wants_call) {
      EXPECT_TRUE(calls) << "round " << round;
    }
    if (count == 0) {
      EXPECT_FALSE(calls);
    }
    while (const auto done = driver_->take()) {
      EXPECT_EQ(expected.erase(done->token), 1u) << "round " << round;
    }
    EXPECT_TRUE(expected.empty());
  }
  EXPECT_GT(token, 10000u);
}

// ---- drivers that are not honest

TEST_P(RingTest, LoopOfDescriptorsBreaksTheRing) {
  if (shape().is_packed) {
    for (uint16_t i = 0; i < shape().size; ++i) {
      store(bytes_.subspan(i * 16),
            PackedDescriptor{.address = kBase,
                             .length = 1,
                             .id = 0,
                             .flags = kDescriptorNext | kDescriptorAvailable});
    }
  } else {
    ASSERT_TRUE(add(1, 2));
    auto first = load<SplitDescriptor>(bytes_);
    for (uint16_t i = 0; i < shape().size; ++i) {
      first.flags = kDescriptorNext;
      first.next = 0;
      store(bytes_.subspan(i * 16), first);
    }
  }
  expect_broken();
}

TEST_P(RingTest, TablesOutsideMemoryBreakTheRing) {
  ASSERT_TRUE(add(1, 2, true));
  // The address of the one descriptor that is available.
  for (uint16_t i = 0; i < shape().size; ++i) {
    store(bytes_.subspan(i * 16), kBase + kMemory - 16);
  }
  expect_broken();
}

TEST_P(RingTest, TablesInTablesBreakTheRing) {
  ASSERT_TRUE(add(1, 1, true));
  const MutableBytes flags = bytes_.subspan(kTables + 512 + (shape().is_packed ? 14 : 12));
  store(flags, kDescriptorIndirect);
  expect_broken();
}

TEST_P(RingTest, RubbishGivesChainsWithinBoundsOrBreaksTheRing) {
  Rng rng(11);
  int chains = 0;
  int broken = 0;
  for (int round = 0; round < 3000; ++round) {
    for (size_t i = 0; i < 3 * 4096; i += 8) {
      // Anything, small numbers, or what is nearly a descriptor: its flags, and a next in the
      // table.
      constexpr uint64_t kMasks[] = {UINT64_MAX, 0xf, 0x0007'0007'0000'0fff};
      store(bytes_.subspan(i), rng.next() & kMasks[rng.below(3)]);
    }
    Result<std::unique_ptr<Ring>> ring = Ring::make(options(), guest_);
    if (!ring) {
      notes_.assign(notes_.size(), std::byte{0});
      continue;
    }
    Chain chain;
    for (int i = 0; i < 20 && (*ring)->take(chain) == Ring::Got::kChain; ++i) {
      ++chains;
      ASSERT_FALSE(chain.segments.empty());
      ASSERT_LE(chain.segments.size(), kSegmentsMax);
      ASSERT_GE(chain.entries, 1);
      ASSERT_LE(chain.entries, shape().size);
      if (rng.below(2) == 0) (*ring)->put(chain, 1);
      if (rng.below(3) == 0) (*ring)->publish();
    }
    if ((*ring)->problem() != nullptr) {
      ++broken;
      ASSERT_EQ((*ring)->take(chain), Ring::Got::kBroken);
    }
    if (rng.below(2) == 0) {
      for (auto& each : notes_) {
        if (rng.below(4) == 0) each = static_cast<std::byte>(rng.next());
      }
    }
  }
  EXPECT_GT(chains, 50);
  EXPECT_GT(broken, 50);
}

TEST_P(RingTest, PartsMustBeInMemoryAndAligned) {
  const auto refused = [&](auto change) {
    RingOptions wrong = options();
    change(wrong);
    return !Ring::make(wrong, guest_).has_value();
  };
  EXPECT_TRUE(refused([](RingOptions& o) { o.descriptors += 8; }));
  EXPECT_TRUE(refused([](RingOptions& o) { o.driver += 1; }));
  EXPECT_TRUE(refused([](RingOptions& o) { o.device += 2; }));
  EXPECT_TRUE(refused([](RingOptions& o) { o.descriptors = kBase + kMemory - 16; }));
  EXPECT_TRUE(refused([](RingOptions& o) { o.device = kBase + kMemory; }));
  EXPECT_TRUE(refused([](RingOptions& o) { o.driver = UINT64_MAX - 3; }));
  EXPECT_TRUE(refused([](RingOptions& o) { o.size = 0; }));
}

// ---- deaths of the device

TEST_P(RingTest, WhatWasOutIsHandedOutAgainInItsOrder) {
  ASSERT_TRUE(add(1));
  ASSERT_TRUE(add(2));
  ASSERT_TRUE(add(3, 1));
  take();
  const Chain second = take();
  ring_->put(second, 5);
  ring_->publish();
  make_device();
  EXPECT_EQ(token_of(take()), 1u);
  EXPECT_EQ(token_of(take()), 3u);
  expect_nothing();
  EXPECT_EQ(driver_->take()->token, 2u);
}

TEST_P(RingTest, AfterACleanEndTheBaseCounts) {
  ASSERT_TRUE(add(1));
  ring_->put(take(), 1);
  ring_->publish();
  const RingBase base = ring_->base();
  ring_->forget_inflight();
  RingOptions next = options();
  next.base = base;
  Result<std::unique_ptr<Ring>> ring = Ring::make(next, guest_);
  ASSERT_TRUE(ring.has_value());
  ring_ = std::move(*ring);
  expect_nothing();
  EXPECT_EQ(driver_->take()->token, 1u);
  ASSERT_TRUE(add(2));
  EXPECT_EQ(token_of(take()), 2u);
}

// Whatever of what publish() stores is there, in the order it stores it, every chain is handed to
// the driver or to the next process: exactly one of the two.
TEST_P(RingTest, NoDeathWhilePublishingLosesOrRepeats) {
  Rng rng(3);
  for (int round = 0; round < 300; ++round) {
    const size_t count = 1 + rng.below(3);
    for (size_t i = 0; i < count; ++i) ASSERT_TRUE(add(i + 1, 1 + rng.below(2)));
    std::vector<Chain> chains;
    for (size_t i = 0; i < count; ++i) chains.push_back(take());
    const std::vector<std::byte> ring_before(bytes_.begin(), bytes_.begin() + 12288);
    const std::vector<std::byte> notes_before = notes_;
    const size_t published = 1 + rng.below(count);
    for (size_t i = 0; i < published; ++i) ring_->put(chains[i], 1);
    ring_->publish();
    // Either the driver sees nothing of it, and the notes are as before or as they are now but for
    // their last step; or it sees all.
    const uint64_t death = rng.below(3);
    if (death == 0) {
      std::ranges::copy(ring_before, bytes_.begin());
      notes_ = notes_before;
    } else if (death == 1) {
      // All but the very end: what is in flight still says so.
      const std::vector<std::byte> after = notes_;
      notes_ = notes_before;
      if (shape().is_packed) {
        auto header = load<PackedRegionHeader>(after);
        const auto old = load<PackedRegionHeader>(notes_before);
        header.old_free_head = old.old_free_head;
        header.old_used_idx = old.old_used_idx;
        header.old_used_wrap_counter = old.old_used_wrap_counter;
        for (size_t i = 0; i < shape().size; ++i) {
          const size_t at = sizeof(PackedRegionHeader) + i * sizeof(PackedState) + 2;
          std::copy_n(after.begin() + static_cast<ptrdiff_t>(at), 2,
                      notes_.begin() + static_cast<ptrdiff_t>(at));
        }
        store(notes_, header);
      } else {
        auto header = load<SplitRegionHeader>(after);
        header.used_idx = load<SplitRegionHeader>(notes_before).used_idx;
        for (size_t i = 0; i < shape().size; ++i) {
          const size_t at = sizeof(SplitRegionHeader) + i * sizeof(SplitState) + 6;
          std::copy_n(after.begin() + static_cast<ptrdiff_t>(at), 2,
                      notes_.begin() + static_cast<ptrdiff_t>(at));
        }
        store(notes_, header);
      }
    }
    make_device();
    std::multiset<uint64_t> seen;
    while (const auto done = driver_->take()) seen.insert(done->token);
    EXPECT_EQ(seen.size(), death == 0 ? 0 : published);
    Chain chain;
    while (ring_->take(chain) == Ring::Got::kChain) {
      seen.insert(token_of(chain));
      ring_->put(chain, 1);
    }
    ring_->publish();
    while (driver_->take()) {
    }
    ASSERT_EQ(seen.size(), count) << "round " << round << ", death " << death;
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(seen.count(i + 1), 1u);
    ASSERT_EQ(driver_->outstanding(), 0u);
  }
}

TEST_P(RingTest, NotesOfAnotherQueueAreRefused) {
  ASSERT_TRUE(add(1));
  take();
  store(MutableBytes(notes_).subspan(10), static_cast<uint16_t>(shape().size * 2));
  EXPECT_FALSE(Ring::make(options(), guest_).has_value());
}

TEST_P(RingTest, WritesAreLogged) {
  RingOptions logged = options();
  DirtyLog log;
  auto bits = std::make_unique<HeapMemory>(64);
  const MutableBytes seen = bits->bytes();
  log.set(std::move(bits));
  logged.log = &log;
  logged.used_log_address = 17 * DirtyLog::kPage;
  Result<std::unique_ptr<Ring>> ring = Ring::make(logged, guest_);
  ASSERT_TRUE(ring.has_value());
  ASSERT_TRUE(add(1));
  Chain chain;
  ASSERT_EQ((*ring)->take(chain), Ring::Got::kChain);
  (*ring)->put(chain, 1);
  (*ring)->publish();
  EXPECT_TRUE(std::ranges::all_of(seen, [](std::byte b) { return b == std::byte{0}; }));
  log.enable(true);
  (*ring)->resume_kicks();
  EXPECT_EQ(seen[2], std::byte{1 << 1});
  ASSERT_TRUE(add(2));
  ASSERT_EQ((*ring)->take(chain), Ring::Got::kChain);
  (*ring)->put(chain, 1);
  (*ring)->publish();
  if (shape().is_packed) {
    EXPECT_EQ(seen[kBase / DirtyLog::kPage / 8], std::byte{1});
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, RingTest,
                         testing::Values(Shape{false, false, 8}, Shape{false, true, 8},
                                         Shape{true, false, 8}, Shape{true, true, 8},
                                         Shape{true, true, 64}, Shape{false, true, 256}),
                         [](const testing::TestParamInfo<Shape>& shape) {
                           return std::string(shape.param.is_packed ? "Packed" : "Split") +
                                  (shape.param.has_event_index ? "Event" : "") +
                                  std::to_string(shape.param.size);
                         });

}  // namespace
}  // namespace cairn::door::vhost_user
