// SPDX-License-Identifier: Apache-2.0
#include "drive/shared_drive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "drive/filter_drive.h"
#include "env/call.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/drive/forgetful.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr uint32_t kCores = 3;
constexpr CoreId kHome{1};  // not where the test's body runs

task::Task<std::unique_ptr<SharedDrive>> open_there(env::Env& there, std::string text,
                                                    Leaves& leaves) {
  std::unique_ptr<Drive> drive = co_await must_open(there, text, leaves);
  co_return std::make_unique<SharedDrive>(there, std::move(drive));
}

// A stack whose home is the second core.
struct Shared {
  SourceLeaves leaves;
  std::unique_ptr<SharedDrive> drive;

  task::Task<void> open(env::Env& env, std::string text) {
    drive = co_await env::call_on(
        env, kHome, [this, &text](env::Env& there) { return open_there(there, text, leaves); });
  }
  task::Task<void> close(env::Env& env) {
    co_await drive->close(env);
    drive.reset();
    co_await env::call_on(env, kHome, [this](env::Env&) { leaves.close(); });
  }
};

template <class F>
task::Task<void> on_each_core(env::Env& env, F function) {
  std::vector<task::Task<void>> calls;
  calls.reserve(kCores);
  for (uint32_t core = 0; core < kCores; ++core) {
    calls.push_back(env::call_on(env, CoreId(core), function));
  }
  co_await task::when_all(std::move(calls));
}

task::Task<void> write_own_blocks(env::Env& env, SharedDrive& shared) {
  std::unique_ptr<Drive> drive = shared.open(env).value();
  for (uint64_t i = 0; i < 20; ++i) {
    const Lba lba(uint64_t{env.core().value()} * 20 + i);
    const auto data = blocks_of(static_cast<uint8_t>(lba.value() + 1), 1);
    const Result<void> written = co_await drive->write(lba, data);
    EXPECT_TRUE(written);
  }
  co_await drive->close();
}

task::Task<void> read_all_blocks(env::Env& env, SharedDrive& shared) {
  std::unique_ptr<Drive> drive = shared.open(env).value();
  for (uint64_t i = 0; i < uint64_t{kCores} * 20; ++i) {
    auto expected = blocks_of(static_cast<uint8_t>(i + 1), 1);
    std::vector<std::byte> back(4096);
    const Result<void> read = co_await drive->read(Lba(i), back);
    EXPECT_TRUE(read);
    EXPECT_EQ(back, expected);
    Result<void> compared = co_await drive->compare(Lba(i), expected);
    EXPECT_TRUE(compared);
    expected[0] = std::byte{0};
    compared = co_await drive->compare(Lba(i), expected);
    EXPECT_TRUE(!compared && compared.error() == Errc::kMismatch);
  }
  co_await drive->close();
}

task::Task<void> share_among_cores(env::Env& env, std::string text) {
  Shared shared;
  co_await shared.open(env, text);
  SharedDrive& drive = *shared.drive;
  co_await on_each_core(env, [&drive](env::Env& there) { return write_own_blocks(there, drive); });
  co_await on_each_core(env, [&drive](env::Env& there) { return read_all_blocks(there, drive); });
  co_await shared.close(env);
}

TEST(SharedDrive, EveryCoreReadsWhatAnyCoreWrote) {
  for (const char* text : {"mem:size=1M", "mirror(file:a,size=1M, file:b,size=1M)"}) {
    run_in_sim([text](env::Env& env) { return share_among_cores(env, text); }, {.cores = kCores});
  }
}

SIM_TEST(SharedDrive, ACancelledRequestOfAnotherCoreEndsSoon, .cores = kCores) {
  Shared shared;
  co_await shared.open(env, "limit(mem:size=1M, iops=1, burst_ms=1000)");
  std::unique_ptr<Drive> drive = shared.drive->open(env).value();
  std::vector<std::byte> block(4096);
  Result<void> done = co_await drive->read(Lba(0), block);
  EXPECT_TRUE(done);
  const Time start = env.now();
  {
    task::Deadline deadline(env, start + 10_ms);
    done = co_await drive->read(Lba(0), block, deadline.token());
  }
  EXPECT_TRUE(!done && done.error() == Errc::kTimedOut);
  EXPECT_LT(env.now() - start, 11_ms);
  co_await drive->close();
  co_await shared.close(env);
}

task::Task<void> read_until(env::Env& env, Drive& drive, Duration after, int& stopped) {
  std::vector<std::byte> block(4096);
  task::Deadline deadline(env, env.now() + after);
  const Result<void> done = co_await drive.read(Lba(3), block, deadline.token());
  EXPECT_TRUE(done || done.error() == Errc::kTimedOut);
  if (!done) ++stopped;
}

// The deadline falls before, into and behind the journey, at the drive and both ways.
task::Task<void> cancel_at_every_moment(env::Env& env) {
  Shared shared;
  co_await shared.open(env, "priority(file:a,size=1M)");
  std::unique_ptr<Drive> drive = shared.drive->open(env).value();
  int stopped = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<task::Task<void>> reads;
    for (int i = 0; i < 4; ++i) {
      const auto after = Duration{static_cast<int64_t>(env.rng().below(300'000))};
      reads.push_back(read_until(env, *drive, after, stopped));
    }
    co_await task::when_all(std::move(reads));
  }
  EXPECT_GT(stopped, 0);
  EXPECT_LT(stopped, 800);
  co_await drive->close();
  co_await shared.close(env);
}

TEST(SharedDrive, CancellingMeetsCompletionAnywhere) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    sim::Cluster cluster({.seed = seed});
    run_in_sim(cluster, &cancel_at_every_moment, {.cores = kCores});
  }
}

task::Task<void> expect_blocks(env::Env& env, SharedDrive& shared, uint64_t blocks) {
  std::unique_ptr<Drive> drive = shared.open(env).value();
  EXPECT_EQ(drive->geometry().blocks, blocks);
  std::vector<std::byte> block(4096);
  const Result<void> last = co_await drive->read(Lba(blocks - 1), block);
  EXPECT_TRUE(last);
  const Result<void> beyond = co_await drive->read(Lba(blocks), block);
  EXPECT_TRUE(!beyond && beyond.error() == Errc::kInvalid);
  co_await drive->close();
}

SIM_TEST(SharedDrive, EveryCoreKnowsItsNewSize, .cores = kCores) {
  Shared shared;
  co_await shared.open(env, "priority(file:a,size=1M)");
  SharedDrive& drive = *shared.drive;
  for (const uint64_t blocks : {512, 512, 128}) {
    std::unique_ptr<Drive> opened = drive.open(env).value();
    const Result<void> resized = co_await opened->resize(blocks);
    EXPECT_TRUE(resized);
    EXPECT_EQ(opened->geometry().blocks, blocks);
    co_await opened->close();
    co_await on_each_core(
        env, [&drive, blocks](env::Env& there) { return expect_blocks(there, drive, blocks); });
  }
  co_await shared.close(env);
}

SIM_TEST(SharedDrive, TellsHolesToOtherCores, .cores = kCores) {
  Shared shared;
  co_await shared.open(env, "priority(file:a,size=1M)");
  std::unique_ptr<Drive> drive = shared.drive->open(env).value();
  const auto data = blocks_of(7, 1);
  const Result<void> written = co_await drive->write(Lba(16), data);
  EXPECT_TRUE(written);
  Extent extent = co_await shared.drive->extent_at(env, *drive, Lba(0), 256);
  EXPECT_TRUE(extent.is_hole);
  EXPECT_EQ(extent.blocks, 16u);
  extent = co_await shared.drive->extent_at(env, *drive, Lba(16), 1);
  EXPECT_FALSE(extent.is_hole);
  co_await drive->close();
  co_await shared.close(env);
}

// Keeps all requests back until it is told to let them go.
class KeepingDrive final : public FilterDrive {
 public:
  explicit KeepingDrive(std::unique_ptr<Drive> below) : FilterDrive(std::move(below)) {}
  void let_go() {
    is_open_ = true;
    while (DriveOp* op = kept_.pop_front()) pass(*op);
  }
  size_t seen = 0;
  std::vector<uint64_t> order;  // of the blocks that were asked for

 private:
  void start(DriveOp& op) override {
    ++seen;
    order.push_back(op.request.lba.value());
    if (is_open_) return pass(op);
    kept_.push_back(op);
  }
  bool is_open_ = false;
  List<DriveOp, DriveOp> kept_;
};

struct Keeping {
  SourceLeaves leaves;
  KeepingDrive* drive = nullptr;  // the shared one's
  std::unique_ptr<SharedDrive> shared;

  task::Task<void> open_here(env::Env& home) {
    std::unique_ptr<Drive> memory = co_await must_open(home, "mem:size=64M", leaves);
    auto own = std::make_unique<KeepingDrive>(std::move(memory));
    drive = own.get();
    shared = std::make_unique<SharedDrive>(home, std::move(own));
  }
  task::Task<void> close(env::Env& env) {
    co_await shared->close(env);
    shared.reset();
    co_await env::call_on(env, kHome, [this](env::Env&) { leaves.close(); });
  }
  task::Task<size_t> seen(env::Env& env) {
    co_return co_await env::call_on(env, kHome, [this](env::Env&) { return drive->seen; });
  }
};

task::Task<void> read_block(Drive& drive, uint64_t lba, size_t& done) {
  std::vector<std::byte> block(4096);
  const Result<void> read = co_await drive.read(Lba(lba), block);
  EXPECT_TRUE(read);
  ++done;
}

SIM_TEST(SharedDrive, SoManyRequestsTravelAndOthersWaitInOrder, .cores = kCores) {
  constexpr size_t kMore = 100;
  Keeping keeping;
  co_await env::call_on(env, kHome, [&](env::Env& home) { return keeping.open_here(home); });
  std::unique_ptr<Drive> far = keeping.shared->open(env).value();
  size_t done = 0;
  std::vector<task::Task<void>> reads;
  for (uint64_t lba = 0; lba < SharedDrive::kTravellingMax + kMore; ++lba) {
    reads.push_back(read_block(*far, lba, done));
  }
  (void)co_await task::sleep_for(env, 1_s);
  size_t seen = co_await keeping.seen(env);
  EXPECT_EQ(seen, SharedDrive::kTravellingMax);
  EXPECT_EQ(done, 0U);
  // One that waits has not left, and ends when it is asked to.
  std::vector<std::byte> block(4096);
  const Time before = env.now();
  {
    task::Deadline deadline(env, before + 10_ms);
    const Result<void> read = co_await far->read(Lba(0), block, deadline.token());
    EXPECT_TRUE(!read && read.error() == Errc::kTimedOut);
  }
  EXPECT_EQ(env.now(), before + 10_ms);
  co_await env::call_on(env, kHome, [&](env::Env&) { keeping.drive->let_go(); });
  co_await task::when_all(std::move(reads));
  seen = co_await keeping.seen(env);
  EXPECT_EQ(seen, SharedDrive::kTravellingMax + kMore);
  EXPECT_TRUE(std::ranges::is_sorted(keeping.drive->order));
  co_await far->close();
  co_await keeping.close(env);
}

// Requests that wait are cancelled while others come back and make room.
task::Task<void> cancel_while_some_wait(env::Env& env) {
  Keeping keeping;
  co_await env::call_on(env, kHome, [&](env::Env& home) { return keeping.open_here(home); });
  std::unique_ptr<Drive> far = keeping.shared->open(env).value();
  size_t done = 0;
  int stopped = 0;
  std::vector<task::Task<void>> reads;
  for (uint64_t lba = 0; lba < SharedDrive::kTravellingMax; ++lba) {
    reads.push_back(read_block(*far, lba, done));
  }
  for (int i = 0; i < 200; ++i) {
    const auto after = Duration{static_cast<int64_t>(env.rng().below(2'000'000))};
    reads.push_back(read_until(env, *far, after, stopped));
  }
  (void)co_await task::sleep_for(env, 1_ms);
  co_await env::call_on(env, kHome, [&](env::Env&) { keeping.drive->let_go(); });
  co_await task::when_all(std::move(reads));
  EXPECT_EQ(done, SharedDrive::kTravellingMax);
  EXPECT_GT(stopped, 0);
  EXPECT_LT(stopped, 200);
  co_await far->close();
  co_await keeping.close(env);
}

TEST(SharedDrive, CancellingMeetsATurnAnywhere) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    sim::Cluster cluster({.seed = seed});
    run_in_sim(cluster, &cancel_while_some_wait, {.cores = kCores});
  }
}

struct Forgetful {
  SourceLeaves leaves;
  ForgetfulDrive* drive = nullptr;  // the shared one's
  std::unique_ptr<SharedDrive> shared;

  task::Task<void> open_here(env::Env& home) {
    std::unique_ptr<Drive> memory = co_await must_open(home, "mem:size=1M", leaves);
    auto own = std::make_unique<ForgetfulDrive>(std::move(memory));
    drive = own.get();
    shared = std::make_unique<SharedDrive>(home, std::move(own));
  }
};

// A drive on the home core tells the same.
task::Task<void> close_near_like(env::Env& home, SharedDrive& shared, Incarnation like) {
  std::unique_ptr<Drive> near = shared.open(home).value();
  EXPECT_EQ(near->incarnation(), like);
  co_await near->close();
}

SIM_TEST(SharedDrive, TellsOfAnotherIncarnationBeforeItAnswers, .cores = kCores) {
  Forgetful forgetful;
  co_await env::call_on(env, kHome, [&](env::Env& home) { return forgetful.open_here(home); });
  std::unique_ptr<Drive> far = forgetful.shared->open(env).value();
  const Incarnation before = far->incarnation();
  EXPECT_NE(before.opening, 0U);
  const int first = co_await read_value(*far, 0);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(far->incarnation(), before);
  co_await env::call_on(env, kHome, [&](env::Env&) { forgetful.drive->lose(); });
  std::vector<std::byte> data(4096);
  const Result<void> read = co_await far->read(Lba(0), data);
  const Incarnation when_answered = far->incarnation();
  EXPECT_TRUE(read);
  EXPECT_NE(when_answered, before);
  EXPECT_EQ(when_answered.medium, before.medium);
  co_await env::call_on(env, kHome, [&](env::Env& home) {
    return close_near_like(home, *forgetful.shared, when_answered);
  });
  std::unique_ptr<Drive> later = forgetful.shared->open(env).value();
  EXPECT_EQ(later->incarnation(), when_answered);
  co_await later->close();
  co_await far->close();
  co_await forgetful.shared->close(env);
  forgetful.shared.reset();
  co_await env::call_on(env, kHome, [&](env::Env&) { forgetful.leaves.close(); });
}

}  // namespace
}  // namespace cairn::drive
