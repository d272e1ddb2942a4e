// SPDX-License-Identifier: Apache-2.0
// Whatever the settings, the network and the order of events: every request is executed once and
// answered once, pairs stay together, data is right, and memory is bounded.
#include <algorithm>
#include <optional>

#include "lanes/lane_test.h"
#include "task/when_all.h"

namespace cairn::lane_tests {
namespace {

using Kind = Request::Kind;
using Mode = fabric::DoorbellOptions::Mode;

constexpr size_t kWorkers = 12;
constexpr uint64_t kOwnBlocks = 40;  // of a worker; some writes are more than a capsule takes
constexpr uint64_t kRequests = 40;   // of a worker

class Schedules : public LaneTest {
 public:
  void run(uint64_t seed) {
    Rng rng(seed);
    world = {};
    world.seed = seed;
    world.network.faults.segment = rng.bernoulli(0.7) ? 0.5 * rng.uniform() : 0;
    world.network.faults.delay = rng.bernoulli(0.3) ? 0.05 : 0;
    world.network.jitter_max = Duration{static_cast<int64_t>(rng.below((100_us).ns))};
    if (rng.bernoulli(0.3)) {
      world.network.send_buffer_size = static_cast<uint32_t>(rng.between(1, 5000));
      world.network.receive_buffer_size = static_cast<uint32_t>(rng.between(1, 5000));
    }
    options.header_digest = rng.bernoulli(0.5);
    options.data_digest = rng.bernoulli(0.5);
    options.queues = static_cast<uint16_t>(rng.between(1, 3));
    options.depth = static_cast<uint16_t>(rng.between(2, 40));
    options.doorbell = draw_doorbell(rng);
    options.lanes.clear();
    for (uint16_t id = 1; id <= options.queues; ++id) {
      if (rng.bernoulli(0.6)) continue;
      const fabric::DoorbellOptions own = draw_doorbell(rng);
      options.lanes[id] = {.batching = own.mode,
                           .caravan = own.count,
                           .caravan_bytes = own.bytes,
                           .doorbell = own.delay,
                           .urgent = rng.bernoulli(0.5)};
    }
    box_options.target.doorbell = draw_doorbell(rng);
    box_options.queue_entries = static_cast<uint16_t>(rng.between(8, 64));
    box_cores = static_cast<uint32_t>(rng.between(1, 3));
    on_host<Schedules>(*this, &Schedules::body);
    const fabric::LaneTotals& seen = box().io_totals();
    EXPECT_EQ(seen.opened, options.queues);
    EXPECT_EQ(seen.work.commands, commands + options.queues) << "lost or doubled";
    EXPECT_EQ(seen.work.failures, 0u) << "a pair was torn, or its block was not what it was";
  }

  uint64_t commands = 0;  // that the host has sent
  uint64_t pairs = 0;

 private:
  static fabric::DoorbellOptions draw_doorbell(Rng& rng) {
    return {.mode = static_cast<Mode>(rng.below(3)),
            .count = static_cast<uint16_t>(rng.between(1, 32)),
            .bytes = static_cast<uint32_t>(rng.between(1, 64 << 10)),
            .delay = Duration{static_cast<int64_t>(rng.below((200_us).ns))}};
  }

  struct Range {
    uint64_t first;
    uint64_t count;
  };
  static Range draw_range(Rng& rng) {
    const uint64_t count = rng.bernoulli(0.2) ? rng.between(1, kOwnBlocks) : rng.between(1, 3);
    return {rng.below(kOwnBlocks - count + 1), count};
  }
  static MutableBytes part_of(std::vector<std::byte>& blocks, const Range& range) {
    return MutableBytes(blocks).subspan(range.first * kBlock, range.count * kBlock);
  }

  // One request of a worker whose blocks hold `now`, and what they hold then.
  static Task<void> one(RemoteDrive& drive, Schedules& test, Rng& rng, uint64_t base,
                        std::vector<std::byte>& now) {
    const Range range = draw_range(rng);
    Request request{.durable = rng.bernoulli(0.1),
                    .no_delay = rng.bernoulli(0.1),
                    .metadata = rng.bernoulli(0.1),
                    .priority = static_cast<drive::Priority>(rng.below(4)),
                    .lba = Lba(base + range.first),
                    .blocks = range.count};
    std::vector<std::byte> data(range.count * kBlock);
    rng.fill(data);
    const MutableBytes piece(data);
    const uint64_t choice = rng.below(10);
    Result<void> done;
    if (choice < 4) {
      request.kind = Kind::kRead;
      done = co_await drive.submit(request, std::span(&piece, 1));
      EXPECT_TRUE(std::ranges::equal(data, part_of(now, range)));
    } else if (choice < 8) {
      request.kind = Kind::kWrite;
      done = co_await drive.submit(request, std::span(&piece, 1));
      std::ranges::copy(data, part_of(now, range).begin());
    } else if (choice < 9) {
      request.kind = Kind::kCompareAndWrite;
      request.blocks = 1;
      const MutableBytes old = part_of(now, {range.first, 1});
      const MutableBytes next = piece.first(kBlock);
      done = co_await drive.submit(request, std::span(&old, 1), std::span(&next, 1));
      std::ranges::copy(next, old.begin());
      ++test.pairs;
    } else {
      request = {.kind = Kind::kFlush};
      done = co_await drive.submit(request, {});
    }
    EXPECT_OK(done);
  }

  static Task<void> worker(env::Env& env, RemoteDrive& drive, Schedules& test, size_t index) {
    Rng rng(env.rng().next());
    std::vector<std::byte> now(kOwnBlocks * kBlock);
    const uint64_t base = index * kOwnBlocks;
    for (uint64_t i = 0; i < kRequests && !HasFailure(); ++i) {
      co_await one(drive, test, rng, base, now);
      if (!rng.bernoulli(0.2)) continue;
      const Duration pause{static_cast<int64_t>(rng.below((300_us).ns))};
      const Result<void> slept = co_await task::sleep_for(env, pause);
      EXPECT_OK(slept);
    }
    std::vector<std::byte> back(now.size());
    const Result<void> got = co_await drive.read(Lba(base), back);
    EXPECT_OK(got);
    EXPECT_EQ(back, now);
  }

  static Task<void> body(env::Env& env, Schedules& test) {
    HostPool pool(env);
    const std::unique_ptr<RemoteDrive> drive = co_await open_drive(pool, test.uri());
    test.pairs = 0;
    std::vector<Task<void>> workers;
    for (size_t i = 0; i < kWorkers; ++i) workers.push_back(worker(env, *drive, test, i));
    co_await task::when_all(std::move(workers));
    EXPECT_EQ(drive->counters().resent, 0u);
    test.commands = drive->counters().commands + test.pairs;
    for (const fabric::HostLane& lane : drive->lanes()) {
      if (lane.queue_id != 0) EXPECT_EQ(lane.in_flight, 0u);
    }
    co_await drive->close();
  }
};

TEST_F(Schedules, ExecuteEachRequestOnce) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    run(seed);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cairn::lane_tests
