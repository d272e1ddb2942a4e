// SPDX-License-Identifier: Apache-2.0
// Lives and deaths of programs, cores and their messages, clocks, pauses.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "env/address.h"
#include "env/call.h"
#include "env/env.h"
#include "env/io.h"
#include "env/stream.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "task/timer.h"
#include "task/when_all.h"
#include "world/sim/cluster.h"
#include "world/sim/options.h"
#include "world/sim/stream_testing.h"
#include "world/sim/testing.h"

namespace cairn::sim {
namespace {

using env::Env;
using task::Task;

struct Outcomes {
  std::vector<std::string> log;
  template <class T>
  void note(const char* what, const Result<T>& result) {
    log.push_back(std::string(what) + ": " + (result ? "ok" : result.error().text()));
  }
};

Task<void> accepting(Env& env, Outcomes& out) {
  const auto listener = env.listen(env::Address::loopback(1));
  const Result<env::Connection> accepted = co_await (*listener)->accept();
  out.note("accept", accepted);
}
Task<void> connecting(Env& env, env::Address to, Outcomes& out) {
  const Result<env::Connection> connected = co_await env.connect(to);
  out.note("connect", connected);
}
Task<void> disk_writing(Env& env, Outcomes& out) {
  auto disk = env.open_disk({.path = "d", .size = 1 << 20, .create = true});
  Result<Buffer> buffer = env.buffers().allocate(65536);
  while (true) {
    const Result<void> written = co_await (*disk)->write(0, buffer->bytes());
    if (written) continue;
    out.note("write", written);
    break;
  }
  const Result<void> again = co_await (*disk)->flush();
  out.note("flush", again);
}
Task<void> sleeping(Env& env, Outcomes& out) {
  const Result<void> slept = co_await task::sleep_for(env, 10_s, env.stop_token());
  out.note("sleep", slept);
  const Time before = env.now();
  const Result<void> without_token = co_await task::sleep_for(env, 3_s);
  out.note("sleep on", without_token);
  EXPECT_EQ((env.now() - before).ns, (3_s).ns) << "its own clock jumps along";
}
Task<void> other_core(Env& env, Outcomes& out) {
  auto wait_there = [](Env& there) -> Task<bool> {
    const Result<void> slept = co_await task::sleep_for(there, 10_s, there.stop_token());
    co_return slept.has_value();
  };
  const bool slept = co_await env::call_on(env, CoreId(1), wait_there);
  out.log.emplace_back(slept ? "call: ok" : "call: cancelled");
}
Task<void> new_things_fail(Env& env, Outcomes& out) {
  task::Event never;
  const Result<void> waited = co_await never.wait(env.stop_token());
  out.note("event", waited);
  out.note("listen", env.listen(env::Address::loopback(2)));
  out.note("open", env.open_disk({.path = "other", .create = true}));
  const Result<env::Connection> connected = co_await env.connect(env::Address::loopback(1));
  out.note("late connect", connected);
  env.trace().record("nobody hears this");
  EXPECT_FALSE(env.buggify("never after death"));
}
Task<void> everything(Env& env, env::Address silent, Outcomes& out) {
  co_await task::when_all(accepting(env, out), connecting(env, silent, out), disk_writing(env, out),
                          sleeping(env, out), other_core(env, out), new_things_fail(env, out));
}

TEST(Crash, EveryOperationFailsAndNoTimePasses) {
  for (const bool is_kill : {false, true}) {
    Outcomes out;
    Cluster cluster;
    cluster.node("silent").start(echo_server(7));
    cluster.run_for(1_ms);
    cluster.node("silent").crash();
    const env::Address silent = cluster.node("silent").address(7);
    cluster.node("a", {.cores = 2}).start([&](Env& env) { return everything(env, silent, out); });
    cluster.run_for(1_s);
    EXPECT_EQ(out.log, std::vector<std::string>{});
    const Time before = cluster.now();
    if (is_kill) {
      cluster.node("a").kill();
    } else {
      cluster.node("a").crash();
    }
    EXPECT_EQ(cluster.now(), before);
    EXPECT_FALSE(cluster.node("a").is_running());
    std::ranges::sort(out.log);
    EXPECT_EQ(out.log, (std::vector<std::string>{
                           "accept: crashed: cancelled", "call: cancelled",
                           "connect: crashed: cancelled", "event: cancellation: cancelled",
                           "flush: crashed: cancelled", "late connect: crashed: cancelled",
                           "listen: crashed: cancelled", "open: crashed: cancelled", "sleep on: ok",
                           "sleep: cancellation: cancelled", "write: crashed: cancelled"}));
    EXPECT_FALSE(cluster.node("a").disk("other").exists());
    EXPECT_EQ(cluster.trace_tail().find("nobody hears"), std::string::npos);
  }
}

Task<void> count_starts(Env& env, int& starts) {
  ++starts;
  co_await pause(env, 100_s);
}

TEST(Crash, RestartRunsTheSameProgramInANewProcess) {
  int starts = 0;
  Cluster cluster;
  Node& node = cluster.node("a");
  node.start([&](Env& env) { return count_starts(env, starts); });
  for (int i = 1; i <= 5; ++i) {
    cluster.run_for(1_ms);
    EXPECT_EQ(starts, i);
    node.crash();
    node.restart();
  }
  node.crash();
  node.crash();
  cluster.run_for(1_s);
  EXPECT_EQ(starts, 5) << "one that never got to run does not run after death";
}

Task<void> crash_myself(Env& env, Cluster& cluster, bool& went_on) {
  co_await pause(env, 1_ms);
  cluster.node("a").crash();
  const Result<void> slept = co_await task::sleep_for(env, 1_ms, env.stop_token());
  went_on = slept.has_value();
}

TEST(Crash, AProgramMayCrashItsOwnNode) {
  bool went_on = true;
  Cluster cluster;
  cluster.node("a").start([&](Env& env) { return crash_myself(env, cluster, went_on); });
  cluster.run_for(1_s);
  EXPECT_FALSE(cluster.node("a").is_running());
  EXPECT_FALSE(went_on);
}

Task<void> wait_for_ever(Env&) {
  task::Event never;
  const Result<void> waited = co_await never.wait();
  EXPECT_FALSE(waited.has_value());
}
Task<void> sleep_for_ever(Env& env) {
  while (true) {
    const Result<void> slept = co_await task::sleep_for(env, 1_s);
    if (!slept) co_return;
  }
}

TEST(CrashDeathTest, AProgramThatDoesNotEndIsNamed) {
  const auto crash = [](Task<void> (*program)(Env&)) {
    Cluster cluster({.seed = 77});
    cluster.node("stubborn").start(program);
    cluster.run_for(1_ms);
    cluster.node("stubborn").crash();
  };
  EXPECT_DEATH(crash(&wait_for_ever), "node stubborn did not end after a crash: it waits");
  EXPECT_DEATH(crash(&sleep_for_ever), "node stubborn did not end after a crash: [0-9]+ steps");
}

Task<void> fail_check(Env& env) {
  env.trace().record("about.to_fail", 11, 22);
  co_await pause(env, 1_ms);
  CHECK(env.now() < Time{0}, "for the test");
}

TEST(CrashDeathTest, AFailedCheckTellsSeedAndTrace) {
  EXPECT_DEATH(
      {
        Cluster cluster({.seed = 77});
        cluster.node("a").start(fail_check);
        cluster.run_for(1_s);
      },
      "for the test(.|\n)*seed 77(.|\n)*CAIRN_SEED=77(.|\n)*a/0 +about.to_fail 11 22"
      "(.|\n)*core.timer");
}

Task<void> leave_timer(Env& env, task::Timer& timer) {
  env.arm(timer, env.now() + 1_s);
  co_return;
}

TEST(ProcessDeathTest, LeavingSomethingBehindIsABug) {
  EXPECT_DEATH(
      {
        task::Timer timer([](task::Timer&) {});
        Cluster cluster;
        cluster.node("a").start([&](Env& env) { return leave_timer(env, timer); });
        cluster.run_for(1_ms);
      },
      "leaves nothing behind when it ends: node a: 1 timers armed");
}

Task<void> spin(Env&) {
  task::Event set;
  set.set();
  while (true) {
    const Result<void> waited = co_await set.wait();
    if (!waited) co_return;
  }
}

TEST(ProcessDeathTest, SpinningInNoTimeIsABug) {
  EXPECT_DEATH(
      {
        Cluster cluster;
        cluster.node("a").start(spin);
        cluster.run_for(1_ms);
      },
      "node a spins");
}

Task<void> tick(Env& env, std::vector<Time>& ticks) {
  while (true) {
    const Result<void> slept = co_await task::sleep_for(env, 10_ms, env.stop_token());
    if (!slept) co_return;
    ticks.push_back(env.now());
  }
}

TEST(Pause, NothingOfThePausedNodeRunsUntilResumed) {
  std::vector<Time> ticks;
  EchoStats stats;
  Cluster cluster;
  cluster.node("a").start([&](Env& env) { return tick(env, ticks); });
  cluster.node("server").start(echo_server(7));
  cluster.node("client").start(
      echo_client(cluster.node("server").address(7), {.round_limit = 100_s}, stats));
  cluster.run_for(105_ms);
  EXPECT_EQ(ticks.size(), 10u);
  cluster.node("a").pause();
  cluster.node("server").pause();
  cluster.node("server").stop();
  cluster.run_for(1_ms);
  const uint64_t rounds = stats.rounds;
  cluster.run_for(1_s);
  EXPECT_EQ(ticks.size(), 10u);
  EXPECT_LE(stats.rounds, rounds) << "nobody answers";
  EXPECT_TRUE(cluster.node("server").is_running()) << "it cannot notice the stop";
  cluster.node("a").resume();
  cluster.node("server").resume();
  cluster.run_for(100_ms);
  ASSERT_GT(ticks.size(), 19u);
  EXPECT_EQ(ticks[10], Time{1'106'000'000}) << "due while paused, at once when resumed";
  EXPECT_EQ(ticks[11], Time{1'116'000'000});
  EXPECT_FALSE(cluster.node("server").is_running());
}

TEST(Pause, APausedNodeMayCrash) {
  std::vector<Time> ticks;
  Cluster cluster;
  cluster.node("a").start([&](Env& env) { return tick(env, ticks); });
  cluster.run_for(5_ms);
  cluster.node("a").pause();
  cluster.run_for(1_s);
  cluster.node("a").crash();
  EXPECT_FALSE(cluster.node("a").is_running());
  cluster.node("a").restart();
  EXPECT_FALSE(cluster.node("a").is_paused());
  cluster.run_for(15_ms);
  EXPECT_EQ(ticks.size(), 1u);
}

struct ClockSeen {
  WallTime wall_before;
  WallTime wall_after;
  Duration monotonic;
};
Task<void> watch_clock(Env& env, ClockSeen& seen) {
  seen.wall_before = env.wall_now();
  const Time before = env.now();
  co_await pause(env, 1_s);
  seen.wall_after = env.wall_now();
  seen.monotonic = env.now() - before;
}

TEST(Clock, StepMovesTheWallClockOnly) {
  ClockSeen seen;
  Cluster cluster;
  cluster.node("a").start([&](Env& env) { return watch_clock(env, seen); });
  cluster.run_for(500_ms);
  cluster.node("a").step_clock(Duration{-3'600'000'000'000});
  cluster.run_for(1_s);
  EXPECT_EQ(seen.monotonic.ns, (1_s).ns);
  EXPECT_EQ(seen.wall_after.ns - seen.wall_before.ns, (1_s).ns - 3'600'000'000'000);
}

TEST(Clock, OffsetsAndDriftShiftBothClocks) {
  ClockSeen seen;
  Cluster cluster;
  const ClockOptions fast{.wall_offset = 7_s, .monotonic_offset = 1000_s, .drift_ppm = 100'000};
  cluster.node("fast", {.clock = fast}).start([&](Env& env) { return watch_clock(env, seen); });
  cluster.run_for(900_ms);
  EXPECT_TRUE(cluster.node("fast").is_running());
  cluster.run_for(10_ms);
  EXPECT_FALSE(cluster.node("fast").is_running()) << "its second is over after 909 ms";
  EXPECT_GE(seen.monotonic, 1_s);
  EXPECT_LE(seen.monotonic.ns, (1_s).ns + 1);
}

struct Letter : env::Message {
  Letter(int id, std::vector<int>& log, Env& from)
      : Message(&Letter::arrive), number(id), arrived(log), home(from.core()) {}
  static void arrive(Message& message, Env& there) {
    auto& self = static_cast<Letter&>(message);
    self.arrived.push_back(self.number);
    EXPECT_NE(there.core(), self.home);
  }
  int number;
  std::vector<int>& arrived;
  CoreId home;
};

Task<void> send_letters(Env& env, std::vector<int>& arrived) {
  std::vector<std::unique_ptr<Letter>> letters;
  for (int i = 0; i < 200; ++i) {
    letters.push_back(std::make_unique<Letter>(i, arrived, env));
    env.post(CoreId(i % 2 + 1), *letters.back());
    if (i % 10 == 0) co_await pause(env, 100_ns);
  }
  EXPECT_LT(arrived.size(), 200u) << "never inside post";
  co_await pause(env, 1_ms);
}

TEST(Cores, MessagesKeepTheirOrderPerPairOfCores) {
  std::vector<int> arrived;
  Cluster cluster;
  cluster.node("a", {.cores = 3}).start([&](Env& env) { return send_letters(env, arrived); });
  cluster.run_for(10_ms);
  ASSERT_EQ(arrived.size(), 200u);
  for (const int core : {0, 1}) {
    std::vector<int> own;
    for (const int id : arrived) {
      if (id % 2 == core) own.push_back(id);
    }
    EXPECT_TRUE(std::ranges::is_sorted(own));
  }
  EXPECT_FALSE(std::ranges::is_sorted(arrived)) << "between pairs there is no order";
}

Task<bool> greet(Env& there, env::Connection connection) {
  const std::unique_ptr<env::Stream> stream = there.open(std::move(connection));
  EXPECT_EQ(there.core(), CoreId(1));
  const Result<void> written = co_await stream->write(as_bytes("from core 1"));
  co_return written.has_value();
}
Task<void> serve_on_core_1(Env& env) {
  const auto listener = env.listen(env::Address::ip4(0, 0, 0, 0, 7));
  Result<env::Connection> connection = co_await (*listener)->accept(env.stop_token());
  if (!connection) co_return;
  auto there = [&](Env& core) { return greet(core, std::move(*connection)); };
  const bool greeted = co_await env::call_on(env, CoreId(1), there);
  EXPECT_TRUE(greeted);
}
Task<void> expect_greeting(Env& env, env::Address to, bool& got_it) {
  co_await pause(env, 1_us);
  auto stream = co_await env::connect_stream(env, to);
  if (!stream) co_return;
  std::byte room[11];
  const Result<void> got = co_await env::read_exactly(**stream, room);
  got_it = got.has_value() && as_text(room) == "from core 1";
}

TEST(Cores, AcceptedConnectionsMoveBetweenCores) {
  bool got_it = false;
  Cluster cluster;
  cluster.node("s", {.cores = 2}).start(serve_on_core_1);
  const env::Address at = cluster.node("s").address(7);
  cluster.node("c").start([&, at](Env& env) { return expect_greeting(env, at, got_it); });
  EXPECT_TRUE(cluster.run_until_idle(1_s));
  EXPECT_TRUE(got_it);
}

Task<void> count_buggify(Env& env, int& enabled_sites, int& calls) {
  for (int site = 0; site < 100; ++site) {
    const std::string name = "site." + std::to_string(site);
    int hits = 0;
    for (int i = 0; i < 200; ++i) hits += env.buggify(name.c_str());
    enabled_sites += hits > 0;
    calls += hits;
  }
  co_return;
}

TEST(Buggify, ASeededSetOfSitesIsEnabledNowAndThen) {
  int first_sites = 0;
  for (const uint64_t seed : {1, 1, 2}) {
    int sites = 0;
    int calls = 0;
    Cluster cluster({.seed = seed});
    cluster.node("a").start([&](Env& env) { return count_buggify(env, sites, calls); });
    cluster.run_for(1_us);
    EXPECT_GT(sites, 10);
    EXPECT_LT(sites, 50);
    EXPECT_LT(calls, sites * 30);
    if (first_sites == 0) first_sites = sites;
    if (seed == 1) EXPECT_EQ(sites, first_sites);
  }
}

}  // namespace
}  // namespace cairn::sim
