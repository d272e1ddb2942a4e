// SPDX-License-Identifier: Apache-2.0
// Single drives that become stacks and single ones again, while every core uses them.
#include "server/open/served_source.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "env/call.h"
#include "server/open/open.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::server {
namespace {

constexpr uint32_t kCores = 3;
constexpr size_t kBlock = 4096;
constexpr uint64_t kBlocksPerCore = 40;

std::unique_ptr<StackPlan> plan_of(const std::string& text) {
  Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(text, LookUp::kWhenOpened);
  EXPECT_TRUE(plan) << plan.error().text;
  return std::move(*plan);
}

// A drive that was opened as a server does it.
task::Task<std::unique_ptr<ServedSource>> serve(env::Env& env, std::string text) {
  Attempt<DriveArgs> args = parse_drive_args(text, LookUp::kWhenOpened);
  Attempt<std::unique_ptr<drive::Source>> source = co_await open_drive(env, *args, CoreId(0));
  EXPECT_TRUE(source) << source.error().text;
  auto served = std::make_unique<ServedSource>(env.core_count());
  co_await served->fill(env, std::move(*source));
  co_return served;
}

// Block n holds a number that grows with each write of it, all over.
std::vector<std::byte> block_of(uint64_t number) {
  std::vector<std::byte> bytes(kBlock);
  for (size_t i = 0; i < kBlock; i += sizeof number) {
    std::memcpy(bytes.data() + i, &number, sizeof number);
  }
  return bytes;
}

uint64_t number_in(Bytes bytes) {
  uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

// One core's door: it writes blocks of its own, reads them, flushes, and is opened anew now and
// then. What it knows of them outlives a power loss.
struct Door {
  uint64_t first = 0;
  std::array<uint64_t, kBlocksPerCore> written{};
  std::array<uint64_t, kBlocksPerCore> flushed{};
  uint64_t requests = 0;
  std::string failure;

  void fail_with(env::Env& env, std::string what) {
    if (failure.empty() && !env.stop_token().requested()) failure = std::move(what);
  }
};

task::Task<void> write_one(env::Env& env, drive::Drive& drive, Door& door, uint64_t index) {
  const std::vector<std::byte> block = block_of(++door.written[index]);
  const Result<void> done = co_await drive.write(Lba(door.first + index), block);
  if (!done) door.fail_with(env, fmt::format("write: {}", done.error().text()));
}

task::Task<void> read_one(env::Env& env, drive::Drive& drive, Door& door, uint64_t index) {
  std::vector<std::byte> block(kBlock);
  const Result<void> done = co_await drive.read(Lba(door.first + index), block);
  if (!done) {
    door.fail_with(env, fmt::format("read: {}", done.error().text()));
  } else if (block != block_of(door.written[index])) {
    door.fail_with(env, fmt::format("block {} holds {} instead of {}", door.first + index,
                                    number_in(block), door.written[index]));
  }
}

task::Task<void> flush_all(env::Env& env, drive::Drive& drive, Door& door) {
  const std::array<uint64_t, kBlocksPerCore> before = door.written;
  const Result<void> done = co_await drive.flush();
  if (done) {
    door.flushed = before;
  } else {
    door.fail_with(env, fmt::format("flush: {}", done.error().text()));
  }
}

// Some requests at once, on blocks that differ.
task::Task<void> use_once(env::Env& env, drive::Drive& drive, Door& door, Rng& rng) {
  std::vector<task::Task<void>> all;
  const uint64_t start = rng.below(kBlocksPerCore);
  const uint64_t count = rng.between(1, 8);
  all.reserve(count + 1);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t index = (start + i) % kBlocksPerCore;
    all.push_back(rng.bernoulli(0.5) ? write_one(env, drive, door, index)
                                     : read_one(env, drive, door, index));
  }
  door.requests += count;
  co_await task::when_all(std::move(all));
  if (rng.bernoulli(0.2)) co_await flush_all(env, drive, door);
}

task::Task<void> use(env::Env& env, ServedSource& served, Door& door, const bool& stop) {
  Rng rng(env.rng().next());
  drive::Incarnation known;
  while (!stop && door.failure.empty() && !env.stop_token().requested()) {
    Result<std::unique_ptr<drive::Drive>> drive = served.open(env);
    if (!drive) co_return door.fail_with(env, drive.error().text());
    if (known.medium == 0) known = (*drive)->incarnation();
    for (uint64_t left = rng.between(1, 20); left > 0 && door.failure.empty(); --left) {
      co_await use_once(env, **drive, door, rng);
      if ((*drive)->incarnation() != known) door.fail_with(env, "another incarnation");
      const Result<void> slept = co_await task::sleep_for(env, 1_us * rng.below(200));
      if (!slept) break;
    }
    co_await (*drive)->close();
  }
}

// What is to be told to the others, and found out about them.
struct Life {
  std::string text;
  bool stop = false;
  uint64_t edits = 0;
  bool is_changing = false;
  bool has_ended = false;
  std::array<Door, kCores> doors;
  std::string failure;
};

std::string draw_stack(Rng& rng, const std::string& text) {
  switch (rng.below(4)) {
    case 0:
      return fmt::format("limit({}, iops=900000)", text);
    case 1:
      return fmt::format("slice(priority({}))", text);
    case 2:
      return fmt::format("cache({}, memory=1M)", text);
    default:
      return text;
  }
}

// A stack, other stacks, and a single drive again.
task::Task<void> change_once(env::Env& env, ServedSource& served, Life& life, Rng& rng) {
  const auto home = CoreId(static_cast<uint32_t>(rng.below(kCores)));
  Attempt<void> done = co_await served.become_stack(env, home, plan_of(life.text));
  for (uint64_t left = rng.below(3); done && left > 0; --left) {
    done = co_await served.stack()->edit(env, plan_of(draw_stack(rng, life.text)));
    ++life.edits;
  }
  if (done) done = co_await served.stack()->edit(env, plan_of(life.text));
  if (done) co_await served.become_single(env);
  if (env.stop_token().requested()) co_return;
  if (!done) life.failure = done.error().text;
  if (done && served.stack() != nullptr) life.failure = "it stayed a stack";
}

task::Task<void> live(env::Env& env, Life& life, uint64_t changes) {
  life.stop = false;
  std::unique_ptr<ServedSource> served = co_await serve(env, life.text);
  std::vector<task::Task<void>> users;
  for (uint32_t core = 0; core < kCores; ++core) {
    Door& door = life.doors[core];
    door.first = core * kBlocksPerCore;
    users.push_back(env::call_on(env, CoreId(core), [&served, &door, &life](env::Env& there) {
      return use(there, *served, door, life.stop);
    }));
  }
  Rng rng(env.rng().next());
  for (uint64_t i = 0; i < changes && life.failure.empty(); ++i) {
    const Result<void> slept =
        co_await task::sleep_for(env, 1_us * rng.below(3000), env.stop_token());
    if (!slept || env.stop_token().requested()) break;
    life.is_changing = true;
    co_await change_once(env, *served, life, rng);
    life.is_changing = false;
  }
  life.stop = true;
  co_await task::when_all(std::move(users));
  co_await served->close(env);
  life.has_ended = !env.stop_token().requested();
}

std::string failures_of(const Life& life) {
  std::string all = life.failure;
  for (const Door& door : life.doors) all += door.failure;
  return all;
}

class Singles : public testing::TestWithParam<const char*> {};

TEST_P(Singles, BecomeStacksAndSingleAgainUnderAllCores) {
  for (const uint64_t seed : sim::seeds_to_run(4)) {
    Life life{.text = GetParam()};
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host", {.cores = kCores});
    node.disk("/d").set_faults({.slow = 0.05, .slow_max = 2_ms});
    node.start([&life](env::Env& env) { return live(env, life, 40); });
    ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
    ASSERT_EQ(failures_of(life), "") << cluster.report();
    EXPECT_TRUE(life.has_ended);
    EXPECT_GT(life.edits, 20U);
    for (const Door& door : life.doors) EXPECT_GT(door.requests, 100U);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Singles,
                         testing::Values("mem:size=1M,block=4096", "file:/d,size=1M,block=4096",
                                         "flash:profile=laptop-tlc,size=64M,block=4096"),
                         [](const testing::TestParamInfo<const char*>& i) {
                           const std::string text = i.param;
                           return text.substr(0, text.find(':'));
                         });

// After a power loss each block holds what was flushed, or what was written since.
task::Task<void> look_after_crash(env::Env& env, Life& life) {
  std::unique_ptr<ServedSource> served = co_await serve(env, life.text);
  Result<std::unique_ptr<drive::Drive>> drive = served->open(env);
  std::vector<std::byte> block(kBlock);
  for (Door& door : life.doors) {
    for (uint64_t i = 0; i < kBlocksPerCore; ++i) {
      const Result<void> read = co_await (*drive)->read(Lba(door.first + i), block);
      EXPECT_TRUE(read);
      const uint64_t found = number_in(block);
      EXPECT_GE(found, door.flushed[i]) << "block " << door.first + i << " was flushed";
      EXPECT_LE(found, door.written[i]);
      EXPECT_EQ(block, block_of(found)) << "torn";
      door.written[i] = found;
      door.flushed[i] = 0;  // what is there may not be durable
    }
  }
  co_await (*drive)->close();
  co_await served->close(env);
}

TEST(ServedSource, APowerLossDuringAChangeLosesNothingThatWasFlushed) {
  uint64_t within = 0;
  size_t seeds = 0;
  for (const uint64_t seed : sim::seeds_to_run(12)) {
    ++seeds;
    Rng rng(seed);
    Life life{.text = "file:/d,size=1M,block=4096"};
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host", {.cores = kCores});
    node.disk("/d").set_faults({.slow = 0.1, .slow_max = 1_ms});
    node.start([&life](env::Env& env) { return live(env, life, 1000); });
    uint64_t requests = rng.between(200, 600);
    const auto is_time = [&] {
      return life.doors[0].requests > requests && life.is_changing && rng.bernoulli(0.1);
    };
    ASSERT_TRUE(cluster.run_until(is_time, 1000_s)) << cluster.report();
    node.crash();
    ++within;
    ASSERT_EQ(failures_of(life), "") << cluster.report();
    node.disk("/d").set_faults({});
    node.start([&life](env::Env& env) { return look_after_crash(env, life); });
    ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
  }
  EXPECT_EQ(within, seeds);
}

// What cannot be flushed is not carried over: the drive stays what it is, and whoever flushes next
// is told.
task::Task<void> fail_to_flush(env::Env& env, sim::Node& node) {
  const std::string text = "file:/d,size=1M,block=4096";
  std::unique_ptr<ServedSource> served = co_await serve(env, text);
  Result<std::unique_ptr<drive::Drive>> drive = served->open(env);
  const std::vector<std::byte> block = block_of(1);
  Result<void> done = co_await (*drive)->write(Lba(3), block);
  EXPECT_TRUE(done);
  node.disk("/d").fail_flushes();
  Attempt<void> changed = co_await served->become_stack(env, CoreId(1), plan_of(text));
  EXPECT_FALSE(changed);
  EXPECT_EQ(served->stack(), nullptr);
  node.disk("/d").heal();
  done = co_await (*drive)->flush();
  EXPECT_FALSE(done) << "the flush that failed was nobody else's";
  done = co_await (*drive)->flush();
  EXPECT_TRUE(done);
  changed = co_await served->become_stack(env, CoreId(1), plan_of(text));
  EXPECT_TRUE(changed);
  co_await (*drive)->close();
  co_await served->close(env);
}

TEST(ServedSource, AFlushThatFailsIsToldAndChangesNothing) {
  sim::Cluster cluster;
  sim::Node& node = cluster.node("host", {.cores = kCores});
  node.start([&node](env::Env& env) { return fail_to_flush(env, node); });
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
}

// Memory that was lent stays though an edit replaces it by other memory that holds the same.
task::Task<void> lend_memory(env::Env& env) {
  const std::string text = "mem:size=1M,block=4096";
  std::unique_ptr<ServedSource> served = co_await serve(env, text);
  Result<std::unique_ptr<drive::Drive>> drive = served->open(env);
  const Bytes lent = (*drive)->lend(Lba(0), 1);
  EXPECT_EQ(lent.size(), kBlock);
  Attempt<void> changed = co_await served->become_stack(env, CoreId(0), plan_of(text));
  EXPECT_TRUE(changed);
  const drive::Incarnation before = (*drive)->incarnation();
  changed = co_await served->stack()->edit(env, plan_of("slice(mem:size=2M, length=1M)"));
  EXPECT_TRUE(changed) << changed.error().text;
  EXPECT_EQ((*drive)->incarnation(), before);
  const std::vector<std::byte> block = block_of(7);
  Result<void> done = co_await (*drive)->write(Lba(0), block);
  EXPECT_TRUE(done);
  std::vector<std::byte> read(kBlock);
  done = co_await (*drive)->read(Lba(0), read);
  EXPECT_TRUE(done);
  EXPECT_EQ(read, block);
  EXPECT_TRUE(std::ranges::equal(lent, block_of(0))) << "whoever borrowed it still looks at it";
  EXPECT_TRUE(served->is_single_below()) << "and so it is kept";
  co_await served->become_single(env);
  EXPECT_NE(served->stack(), nullptr) << "another memory is not the one it was";
  co_await (*drive)->close();
  co_await served->close(env);
}

TEST(ServedSource, LentMemoryStaysWhenTheDriveBecomesAnother) {
  sim::Cluster cluster;
  sim::Node& node = cluster.node("host");
  node.start([](env::Env& env) { return lend_memory(env); });
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
}

// A stack that does without the single drive gives it back: the file is free for others.
task::Task<void> drop_file(env::Env& env) {
  const std::string text = "file:/d,size=1M,block=4096";
  std::unique_ptr<ServedSource> served = co_await serve(env, text);
  Attempt<void> changed = co_await served->become_stack(env, CoreId(2), plan_of(text));
  EXPECT_TRUE(changed);
  changed = co_await served->stack()->edit(env, plan_of("file:/other,size=1M"));
  EXPECT_TRUE(changed) << changed.error().text;
  EXPECT_FALSE(served->is_single_below());
  std::unique_ptr<ServedSource> other = co_await serve(env, text);
  co_await other->close(env);
  co_await served->close(env);
}

TEST(ServedSource, AFileThatIsNoLayerAnyMoreIsFree) {
  sim::Cluster cluster;
  sim::Node& node = cluster.node("host", {.cores = kCores});
  node.start([](env::Env& env) { return drop_file(env); });
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
}

}  // namespace
}  // namespace cairn::server
