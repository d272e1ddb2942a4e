// SPDX-License-Identifier: Apache-2.0
// What i10 promises, counted: how many sends and wake-ups requests take, and what waiting costs.
#include "lanes/lane_test.h"
#include "lanes/load.h"

namespace cairn::lane_tests {
namespace {

using fabric::LaneTraffic;
using fabric::RingCause;
using Mode = fabric::DoorbellOptions::Mode;

struct Outcome {
  LaneTraffic host;
  LaneTraffic box;
  Duration took;
  uint64_t requests = 0;

  double host_sends() const {
    return static_cast<double>(host.out.sends) / static_cast<double>(requests);
  }
  double box_sends() const {
    return static_cast<double>(box.out.sends) / static_cast<double>(requests);
  }
  // Times that one side or the other was woken by bytes.
  double wake_ups() const {
    return static_cast<double>(host.in.reads + box.in.reads) / static_cast<double>(requests);
  }
  uint64_t timers() const { return host.out.timers + box.out.timers; }
};

LaneTraffic difference(LaneTraffic after, const LaneTraffic& before) {
  after.out.sends -= before.out.sends;
  after.out.messages -= before.out.messages;
  after.out.bytes -= before.out.bytes;
  after.out.timers -= before.out.timers;
  for (size_t i = 0; i < fabric::kRingCauses; ++i) after.out.rings[i] -= before.out.rings[i];
  after.in.reads -= before.in.reads;
  after.in.pdus -= before.in.pdus;
  after.in.bytes -= before.in.bytes;
  return after;
}

class Proof : public LaneTest {
 public:
  // What the load alone did: that of a run with it, without what opening and closing takes.
  Outcome measure(Mode host, Mode box, const Load& load) {
    world.network.jitter_max = 0_s;
    world.buggify.site = 0;
    options.doorbell.mode = host;
    options.depth = 512;
    box_options.target.doorbell.mode = box;
    box_options.queue_entries = 1024;
    const Outcome idle = run({.depth = 0});
    Outcome outcome = run(load);
    outcome.host = difference(outcome.host, idle.host);
    outcome.box = difference(outcome.box, idle.box);
    return outcome;
  }

 private:
  Outcome run(const Load& load) {
    load_ = load;
    on_host<Proof>(*this, &Proof::body);
    outcome_.box = box().io_totals().work.traffic;
    outcome_.requests = load.depth * load.rounds;
    return outcome_;
  }
  static Task<void> body(env::Env& env, Proof& test) {
    HostPool pool(env);
    const std::unique_ptr<RemoteDrive> drive = co_await open_drive(pool, test.uri());
    const Time begin = env.now();
    co_await put_load(*drive, test.load_);
    test.outcome_.took = env.now() - begin;
    test.outcome_.host = drive->paths()[0]->controller().traffic();
    co_await drive->close();
  }

  Load load_;
  Outcome outcome_;
};

uint64_t rings(const LaneTraffic& traffic, RingCause cause) {
  return traffic.out.rings[static_cast<size_t>(cause)];
}

TEST_F(Proof, SixteenReadsLeaveAs1152BytesInOneSend) {
  const Outcome outcome = measure(Mode::kFixed, Mode::kFixed, {.depth = 16});
  EXPECT_EQ(outcome.host.out.sends, 1u);
  EXPECT_EQ(outcome.host.out.messages, 16u);
  EXPECT_EQ(outcome.host.out.bytes, 16u * 72);
  EXPECT_EQ(rings(outcome.host, RingCause::kCount), 1u);
  EXPECT_EQ(outcome.box.in.reads, 1u);
  EXPECT_EQ(outcome.box.in.pdus, 16u);
  EXPECT_EQ(outcome.box.out.sends, 1u) << "and so do their answers";
}

TEST_F(Proof, AtDepth128ASendCarriesSixteen) {
  for (const bool writes : {false, true}) {
    const Load load{.depth = 128, .rounds = 50, .writes = writes};
    for (const Mode mode : {Mode::kFixed, Mode::kAdaptive}) {
      const Outcome outcome = measure(mode, mode, load);
      EXPECT_LT(outcome.host_sends(), 1.2 / 16) << name(mode);
      // A drive in memory answers a caravan before the next has come, so that an adaptive box has
      // little else to do and waits for eight.
      EXPECT_LT(outcome.box_sends(), 1.2 / (mode == Mode::kFixed ? 16 : 8)) << name(mode);
    }
    const Outcome off = measure(Mode::kOff, Mode::kOff, load);
    EXPECT_GE(off.host_sends(), 1.0);
    EXPECT_GE(off.box_sends(), 1.0);
  }
}

TEST_F(Proof, WakeUpsAreAThirdOrFewer) {
  for (const size_t depth : {32, 128}) {
    const Load load{.depth = depth, .rounds = 50};
    const Outcome off = measure(Mode::kOff, Mode::kOff, load);
    for (const Mode mode : {Mode::kFixed, Mode::kAdaptive}) {
      const Outcome batched = measure(mode, mode, load);
      EXPECT_GE(off.wake_ups(), 3 * batched.wake_ups()) << name(mode) << " at depth " << depth;
    }
  }
}

TEST_F(Proof, AdaptiveCostsNothingAtDepthOne) {
  for (const bool writes : {false, true}) {
    const Load load{.depth = 1, .rounds = 100, .writes = writes};
    const Outcome off = measure(Mode::kOff, Mode::kOff, load);
    const Outcome adaptive = measure(Mode::kAdaptive, Mode::kAdaptive, load);
    EXPECT_EQ(adaptive.took.ns, off.took.ns);
    EXPECT_EQ(adaptive.timers(), 0u);
    EXPECT_EQ(adaptive.host.out.sends, off.host.out.sends);
  }
}

TEST_F(Proof, AdaptiveArmsNoTimerUpToSevenInFlight) {
  for (size_t depth = 1; depth <= 7; ++depth) {
    const Outcome outcome =
        measure(Mode::kAdaptive, Mode::kAdaptive, {.depth = depth, .rounds = 50});
    EXPECT_EQ(outcome.timers(), 0u) << depth;
  }
}

// A timer that is armed is for the case that nothing comes; under load something does.
TEST_F(Proof, AdaptiveSeldomWaitsForItsTimer) {
  for (const size_t depth : {16, 32, 64, 128, 512}) {
    const Outcome outcome =
        measure(Mode::kAdaptive, Mode::kAdaptive, {.depth = depth, .rounds = 50});
    const uint64_t late =
        rings(outcome.host, RingCause::kTimer) + rings(outcome.box, RingCause::kTimer);
    EXPECT_LE(late * 100, outcome.requests) << depth;
  }
}

TEST_F(Proof, AFixedTimerAddsAtMostItself) {
  const Load load{.depth = 1, .rounds = 100};
  const Outcome off = measure(Mode::kOff, Mode::kOff, load);
  const Outcome host = measure(Mode::kFixed, Mode::kOff, load);
  const Outcome both = measure(Mode::kFixed, Mode::kFixed, load);
  const Duration delay = options.doorbell.delay;
  EXPECT_EQ((host.took - off.took).ns, 100 * delay.ns);
  EXPECT_EQ((both.took - off.took).ns, 200 * delay.ns);
  EXPECT_EQ(rings(host.host, RingCause::kTimer), 100u);
}

}  // namespace
}  // namespace cairn::lane_tests
