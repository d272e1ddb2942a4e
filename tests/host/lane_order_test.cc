// SPDX-License-Identifier: Apache-2.0
// Over random schedules: commands of a lane arrive in the order in which they were asked for, each
// once, none later than its doorbell allows, and an urgent one at once with all before it.
#include <algorithm>

#include "host/drive_fixture.h"
#include "nvme/format/io_format.h"
#include "task/when_all.h"

namespace cairn::host_tests {
namespace {

using Mode = fabric::DoorbellOptions::Mode;

constexpr uint64_t kCommands = 300;
// From the doorbell to the target: the way of a few KiB at most.
constexpr Duration kWay = 60_us;

class LaneOrder : public DriveTest {
 public:
  struct Asked {
    Time at;
    bool urgent = false;
  };
  struct Seen {
    Time at;
    uint64_t lba = 0;
  };

  void run(uint64_t seed) {
    Rng rng(seed);
    world.seed = seed;
    world.network.faults.segment = 0.3 * rng.uniform();
    options.depth = fabric::kHostDepthMax;
    options.doorbell = {.mode = static_cast<Mode>(rng.below(3)),
                        .count = static_cast<uint16_t>(rng.between(2, 32)),
                        .bytes = 64 << 10,
                        .delay = Duration{static_cast<int64_t>(rng.below((2_ms).ns))}};
    target.options.latency = Duration{static_cast<int64_t>(rng.below((500_us).ns))};
    target.options.on_command = for_io([this](FakeConnection&, const Sqe& sqe) {
      seen.push_back({cluster().now(), nvme::BlockFields::decode(sqe).start.value()});
      return Verdict::kServe;
    });
    asked.clear();
    seen.clear();
    finished = false;
    on_host<LaneOrder>(*this, &LaneOrder::body);
    check();
  }

  std::vector<Asked> asked;
  std::vector<Seen> seen;

 private:
  void check() const {
    ASSERT_EQ(seen.size(), kCommands);
    ASSERT_EQ(asked.size(), kCommands);
    for (uint64_t i = 0; i < kCommands; ++i) {
      ASSERT_EQ(seen[i].lba, i) << "out of turn";
      const Duration took = seen[i].at - asked[i].at;
      const bool waits = !asked[i].urgent && options.doorbell.mode != Mode::kOff;
      EXPECT_LE(took, (waits ? options.doorbell.delay : 0_s) + kWay) << "command " << i;
    }
  }
  static Task<void> read(RemoteDrive& drive, Request request) {
    std::vector<std::byte> data(kBlock);
    const MutableBytes piece(data);
    const Result<void> done = co_await drive.submit(request, std::span(&piece, 1));
    EXPECT_OK(done);
  }
  static Task<void> body(env::Env& env, LaneOrder& test) {
    const std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<Task<void>> reads;
    for (uint64_t i = 0; i < kCommands; ++i) {
      Request request{.kind = Kind::kRead, .lba = Lba(i), .blocks = 1};
      if (env.rng().bernoulli(0.1)) request.metadata = true;
      test.asked.push_back({test.cluster().now(), request.is_urgent()});
      reads.push_back(read(*drive, request));
      if (!env.rng().bernoulli(0.3)) continue;
      const Duration pause{static_cast<int64_t>(env.rng().below((100_us).ns))};
      const Result<void> slept = co_await task::sleep_for(env, pause);
      EXPECT_OK(slept);
    }
    co_await task::when_all(std::move(reads));
    co_await drive->close();
  }
};

TEST_F(LaneOrder, HoldsWhateverTheSchedule) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    run(seed);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cairn::host_tests
