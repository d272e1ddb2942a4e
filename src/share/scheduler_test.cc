// SPDX-License-Identifier: Apache-2.0
#include "share/scheduler.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"

namespace cairn::share {
namespace {

constexpr auto kAny = [](const Pending&) { return true; };
constexpr Time at(int64_t us) { return Time{us * 1000}; }

Pending request(uint32_t stream, uint64_t tag, uint32_t bytes, IoType type = IoType::kRead,
                uint32_t drive = 0) {
  return {.stream = StreamId(stream),
          .tag = tag,
          .drive = DriveId(drive),
          .type = type,
          .bytes = bytes};
}

// The tags in the order in which they go.
std::string order(Scheduler& scheduler) {
  std::string tags;
  while (const std::optional<Pending> next = scheduler.dequeue(kAny)) {
    tags += std::to_string(next->tag);
  }
  return tags;
}

TEST(Scheduler, SmallRequestsGoBeforeLargeOnes) {
  Scheduler scheduler;
  EXPECT_TRUE(scheduler.enqueue(request(1, 1, 1 << 20), at(0)));
  EXPECT_TRUE(scheduler.enqueue(request(2, 2, 4096), at(0)));
  EXPECT_TRUE(scheduler.enqueue(request(3, 3, 65536), at(0)));
  EXPECT_EQ(order(scheduler), "231");
}

TEST(Scheduler, AStreamsRequestsGoInTheirOrder) {
  Scheduler scheduler;
  EXPECT_TRUE(scheduler.enqueue(request(1, 1, 1 << 20), at(0)));
  EXPECT_TRUE(scheduler.enqueue(request(1, 2, 4096), at(0)));
  EXPECT_TRUE(scheduler.enqueue(request(2, 3, 65536), at(0)));
  EXPECT_EQ(order(scheduler), "312");
}

TEST(Scheduler, WritesCostWhatTheDriveFindsHard) {
  Scheduler scheduler;
  EXPECT_TRUE(scheduler.enqueue(request(1, 1, 8192, IoType::kWrite), at(0)));
  EXPECT_TRUE(scheduler.enqueue(request(2, 2, 16384), at(0)));
  EXPECT_EQ(order(scheduler), "12");
  scheduler.set_write_cost(DriveId(0), 90);
  EXPECT_TRUE(scheduler.enqueue(request(1, 1, 8192, IoType::kWrite), at(0)));
  EXPECT_TRUE(scheduler.enqueue(request(2, 2, 16384), at(0)));
  EXPECT_EQ(order(scheduler), "21");
}

TEST(Scheduler, AStreamWithASmallShareWaitsForOneWithALargeShare) {
  Scheduler scheduler;
  scheduler.set_share(StreamId(1), 100);
  EXPECT_TRUE(scheduler.enqueue(request(1, 1, 8192), at(0)));
  EXPECT_TRUE(scheduler.enqueue(request(2, 2, 65536), at(0)));
  EXPECT_EQ(order(scheduler), "21");
}

TEST(Scheduler, WhatHasWaitedLongGoesFirst) {
  Scheduler scheduler;
  EXPECT_TRUE(scheduler.enqueue(request(1, 1, 1 << 20), at(0)));
  EXPECT_TRUE(scheduler.enqueue(request(2, 2, 4096), at(1000)));
  EXPECT_TRUE(scheduler.enqueue(request(3, 3, 4096), at(1100)));
  EXPECT_EQ(order(scheduler), "213");
}

TEST(Scheduler, RanksOfVictimsRiseWhenTheirDriveIsCongested) {
  Scheduler scheduler;
  EXPECT_TRUE(scheduler.enqueue(request(1, 1, 4096, IoType::kRead, 1), at(0)));
  EXPECT_TRUE(scheduler.enqueue(request(2, 2, 65536, IoType::kRead, 2), at(0)));
  scheduler.set_congestion(DriveId(1), 3_ms);
  EXPECT_EQ(order(scheduler), "21");
  EXPECT_TRUE(scheduler.enqueue(request(1, 1, 4096, IoType::kRead, 1), at(0)));
  EXPECT_TRUE(scheduler.enqueue(request(2, 2, 65536, IoType::kRead, 2), at(0)));
  scheduler.set_congestion(DriveId(1), 0_ms);
  EXPECT_EQ(order(scheduler), "12");
}

// A drive that has no room for a large request gets no small one meanwhile; other drives do.
TEST(Scheduler, NothingPassesWhatItsDriveHasNoRoomForYet) {
  Scheduler scheduler;
  EXPECT_TRUE(scheduler.enqueue(request(1, 1, 4096, IoType::kRead, 1), at(0)));
  EXPECT_TRUE(scheduler.enqueue(request(2, 2, 1 << 20, IoType::kRead, 1), at(0)));
  EXPECT_TRUE(scheduler.enqueue(request(3, 3, 1 << 20, IoType::kRead, 2), at(0)));
  int asked = 0;
  const auto only_two = [&](const Pending& one) {
    ++asked;
    return one.drive == DriveId(2);
  };
  const std::optional<Pending> next = scheduler.dequeue(only_two);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->tag, 3u);
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(scheduler.dequeue(only_two));
  EXPECT_EQ(asked, 3);
}

TEST(Scheduler, WhatWaitsIsBounded) {
  Scheduler scheduler;
  for (size_t i = 0; i < Scheduler::kPendingMax; ++i) {
    ASSERT_TRUE(scheduler.enqueue(request(1, i, 4096), at(0)));
  }
  EXPECT_EQ(scheduler.enqueue(request(2, 0, 4096), at(0)).error(), Errc::kLimit);
  EXPECT_EQ(scheduler.size(), Scheduler::kPendingMax);
}

TEST(Scheduler, WhatIsTakenBackLeavesTheOthersInTheirOrder) {
  Scheduler scheduler;
  for (uint64_t tag = 1; tag <= 4; ++tag) {
    ASSERT_TRUE(scheduler.enqueue(request(1, tag, 4096), at(0)));
  }
  ASSERT_TRUE(scheduler.enqueue(request(2, 5, 65536), at(0)));
  EXPECT_TRUE(scheduler.remove(StreamId(1), 1));
  EXPECT_TRUE(scheduler.remove(StreamId(1), 3));
  EXPECT_FALSE(scheduler.remove(StreamId(1), 3));
  EXPECT_FALSE(scheduler.remove(StreamId(2), 4));
  EXPECT_FALSE(scheduler.remove(StreamId(7), 1));
  EXPECT_EQ(scheduler.size(), 3U);
  EXPECT_EQ(order(scheduler), "245");
  ASSERT_TRUE(scheduler.enqueue(request(1, 6, 4096), at(0)));
  EXPECT_TRUE(scheduler.remove(StreamId(1), 6));
  EXPECT_EQ(scheduler.size(), 0U);
  EXPECT_EQ(order(scheduler), "");
}

// Requests of all kinds, more than the drives take, with ranks and congestion that change.
class Crowd {
 public:
  explicit Crowd(uint64_t seed) : rng_(seed) {
    for (uint32_t i = 0; i < 8; ++i) {
      scheduler_.set_share(StreamId(i), static_cast<uint32_t>(rng_.between(50, 1000)));
    }
  }
  struct Seen {
    Time came;
    StreamId stream;
    uint64_t waiting = 0;  // before it, when it came
    uint64_t gone = 0;
  };
  // Calls check(what went, now, all that came, how many went) for each that goes.
  template <class Check>
  void run(Check check) {
    std::vector<Seen> seen;
    uint64_t gone = 0;
    for (Time now{}; now < Time{(300_ms).ns}; now = now + 100_us) {
      for (uint64_t n = rng_.below(4); n > 0; --n) {
        const Pending one = draw(seen.size());
        seen.push_back(
            {.came = now, .stream = one.stream, .waiting = scheduler_.size(), .gone = gone});
        ASSERT_TRUE(scheduler_.enqueue(one, now));
      }
      if (rng_.bernoulli(0.1)) {
        const DriveId drive(static_cast<uint32_t>(rng_.below(3)));
        scheduler_.set_congestion(drive, {static_cast<int64_t>(rng_.below(20'000'000))});
        scheduler_.set_write_cost(drive, static_cast<uint32_t>(rng_.between(10, 90)));
      }
      if (const std::optional<Pending> next = scheduler_.dequeue(kAny)) {
        check(*next, now, seen, gone++);
      }
    }
  }
  size_t waiting() const { return scheduler_.size(); }

 private:
  Pending draw(uint64_t tag) {
    // One stream has large writes only; the others do all they can to be before it.
    const auto stream = static_cast<uint32_t>(rng_.below(8));
    const auto drive = static_cast<uint32_t>(rng_.below(3));
    if (stream == 0) return request(0, tag, 4U << 20, IoType::kWrite, drive);
    return request(stream, tag, static_cast<uint32_t>(4096 << rng_.below(4)),
                   rng_.bernoulli(0.3) ? IoType::kWrite : IoType::kRead, drive);
  }
  Rng rng_;
  Scheduler scheduler_;
};

TEST(Scheduler, NoRequestGoesBeforeOneThatCameTheBoundEarlier) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Crowd crowd(seed);
    std::vector<bool> is_gone;
    crowd.run([&](const Pending& next, Time, const std::vector<Crowd::Seen>& seen, uint64_t) {
      is_gone.resize(seen.size());
      is_gone[next.tag] = true;
      const Time came = seen[next.tag].came;
      for (size_t i = 0; i < next.tag && seen[i].came + Scheduler::kAgingBound < came; ++i) {
        ASSERT_TRUE(is_gone[i]) << "seed " << seed << ": " << i << " after " << next.tag;
      }
    });
    EXPECT_GT(crowd.waiting(), 100u) << "there was no crowd";
  }
}

// So a request waits for those that waited when it came, and those that came within the bound after
// it, and for no others, however many come.
TEST(Scheduler, ARequestWaitsForNoMoreThanThoseOfTheBound) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Crowd crowd(seed);
    crowd.run([&](const Pending& next, Time, const std::vector<Crowd::Seen>& seen, uint64_t gone) {
      const Crowd::Seen& self = seen[next.tag];
      uint64_t within = 0;
      for (size_t i = next.tag + 1; i < seen.size(); ++i) {
        if (seen[i].came <= self.came + Scheduler::kAgingBound) ++within;
      }
      ASSERT_LE(gone - self.gone, self.waiting + within) << "seed " << seed;
    });
  }
}

TEST(Scheduler, StreamsKeepTheirOrderWhateverHappens) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Crowd crowd(seed);
    std::map<StreamId, uint64_t> newest;
    crowd.run([&](const Pending& next, Time, const auto&, uint64_t) {
      const auto [place, is_first] = newest.try_emplace(next.stream, next.tag);
      if (is_first) return;
      ASSERT_LT(place->second, next.tag) << "seed " << seed;
      place->second = next.tag;
    });
  }
}

}  // namespace
}  // namespace cairn::share
