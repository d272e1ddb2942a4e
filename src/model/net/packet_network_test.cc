// SPDX-License-Identifier: Apache-2.0
#include "model/net/packet_network.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "model/net/testing.h"

namespace cairn::net {
namespace {

Parameters pause_only() {
  Parameters p;
  p.control = Control::kNone;
  p.ecn.enabled = false;
  p.buffer_bytes = 1 << 20;
  return p;
}

TEST(PacketNetwork, IncastUnderPauseLosesNothingAndKeepsTheLinkBusy) {
  Network network(star(11), pause_only());
  start_incast(network, 10, 1'000'000);
  Completions done;
  network.advance(kNever, done);
  const Counters& k = network.counters();
  EXPECT_EQ(done.all.size(), 10U);
  EXPECT_EQ(k.drops, 0U);
  EXPECT_GT(k.pauses_at_hosts, 0U);
  EXPECT_EQ(k.pauses_at_hosts, k.resumes);
  EXPECT_EQ(k.payload_bytes_delivered, 10'000'000U);
  EXPECT_EQ(k.repeated_packets, 0U);
  // 10,000 frames one after the other, one hop before, two links there and two back.
  EXPECT_EQ(done.last(), 10'001 * Picos{838'400} + 4 * kMicrosecond + 2 * Picos{48'000});
}

TEST(PacketNetwork, PauseSpreadsToFlowsThatDoNotCauseIt) {
  // Hosts 0 and 1 hang at one leaf, the senders at two others. All but one send to host 0; the
  // last sends to the idle host 1, and waits behind the others' paused uplinks.
  LeafSpine shape;
  shape.leaves = 3;
  shape.hosts_per_leaf = 10;
  shape.spines = 1;
  const auto victim = [&](bool congested) {
    Network network(leaf_spine(shape), pause_only());
    for (uint32_t i = 10; congested && i < 29; ++i) {
      if (i == 19) continue;
      network.start({.tag = i, .source = i, .destination = 0, .bytes = 1'000'000});
    }
    network.start({.tag = 99, .source = 19, .destination = 1, .bytes = 100'000});
    Completions done;
    network.advance(kNever, done);
    EXPECT_EQ(network.counters().drops, 0U);
    if (congested) EXPECT_GT(network.counters().pauses_at_switches, 0U);
    return done.of(99);
  };
  EXPECT_GT(victim(true), 5 * victim(false));
}

TEST(PacketNetwork, DcqcnKeepsQueuesShortOfPause) {
  Network network(star(11), Parameters{});
  start_incast(network, 10, 10'000'000);
  Completions done;
  network.advance(kNever, done);
  EXPECT_EQ(network.counters().pauses_at_hosts, 0U);
  EXPECT_GT(network.counters().marks, 0U);
  EXPECT_LT(done.last(), 100 * kMillisecond);  // 84 ms at full speed
}

TEST(PacketNetwork, LostPacketsAreSentAgain) {
  Parameters p = pause_only();
  p.pfc.enabled = false;
  p.buffer_bytes = 100'000;
  p.retransmit_timeout = kMillisecond;
  Network network(star(5), p);
  start_incast(network, 4, 200'000);
  Completions done;
  network.advance(kSecond, done);
  EXPECT_GT(network.counters().drops, 0U);
  EXPECT_EQ(done.all.size(), 4U);
  EXPECT_EQ(network.counters().payload_bytes_delivered, 800'000U);
}

TEST(PacketNetwork, JumboFramesSpendLessOnHeaders) {
  Parameters p;
  p.payload_bytes = 9000;
  Network network(star(2), p);
  network.start({.source = 0, .destination = 1, .bytes = 900'000});
  Completions done;
  network.advance(kNever, done);
  EXPECT_EQ(done.last(), 101 * Picos{9048} * 800 + 4 * kMicrosecond + 2 * Picos{48'000});
}

TEST(PacketNetwork, PrioritiesTakeTurnsAndArePausedApart) {
  Network network(star(9), pause_only());
  for (uint32_t i = 1; i <= 8; ++i) {
    network.start({.tag = i,
                   .source = i,
                   .destination = 0,
                   .bytes = 500'000,
                   .priority = static_cast<uint8_t>(i <= 2 ? 5 : 3)});
  }
  Completions done;
  network.advance(kNever, done);
  // Two flows have half of the link, six the other half.
  for (uint32_t i = 3; i <= 8; ++i) EXPECT_GT(done.of(i), 1.5 * static_cast<double>(done.of(1)));
  EXPECT_EQ(network.counters().drops, 0U);
}

TEST(PacketNetwork, CountersOverTimeAddUp) {
  Parameters p = pause_only();
  p.bin = 100 * kMicrosecond;
  Network network(star(11), p);
  start_incast(network, 10, 300'000);
  Completions done;
  network.advance(kNever, done);
  const Counters& k = network.counters();
  uint64_t pauses = 0;
  uint64_t deepest = 0;
  for (const PortCounters& port : k.ports) {
    uint64_t bytes = 0;
    for (const uint64_t bin : port.sent_bytes.bins()) bytes += bin;
    EXPECT_EQ(bytes, port.bytes);
    for (const uint64_t bin : port.pauses.bins()) pauses += bin;
    for (const uint64_t bin : port.queue_bytes.bins()) deepest = std::max(deepest, bin);
  }
  EXPECT_EQ(pauses, k.pauses_at_hosts);
  EXPECT_GT(deepest, 400'000U);
}

TEST(PacketNetwork, FlowsMayBeStartedFromCompletions) {
  struct Chain final : FlowSink {
    void flow_done(const FlowDone& done) override {
      ++finished;
      if (done.tag < 5) {
        network->start({.tag = done.tag + 1,
                        .source = static_cast<uint32_t>(done.tag % 2),
                        .destination = static_cast<uint32_t>((done.tag + 1) % 2),
                        .bytes = 1000,
                        .start = network->now()});
      }
    }
    Network* network = nullptr;
    int finished = 0;
  };
  Network network(star(2), Parameters{});
  Chain chain;
  chain.network = &network;
  network.start({.tag = 1, .source = 0, .destination = 1, .bytes = 1000});
  network.advance(kNever, chain);
  EXPECT_EQ(chain.finished, 5);
  EXPECT_EQ(network.now(), 5 * (2 * Picos{838'400} + 4 * kMicrosecond + 2 * Picos{48'000}));
}

TEST(PacketNetwork, StepsOfAnyLengthGiveTheSame) {
  Rng rng(5);
  const auto run = [&](bool small_steps) {
    Network network(star(6), Parameters{});
    start_incast(network, 5, 400'000);
    Completions done;
    while (small_steps && network.next_event() != kNever) {
      network.advance(network.next_event() + static_cast<Picos>(rng.below(kMicrosecond)), done);
    }
    network.advance(kNever, done);
    std::vector<Picos> finished;
    finished.reserve(done.all.size());
    for (const FlowDone& one : done.all) finished.push_back(one.finished);
    return finished;
  };
  EXPECT_EQ(run(true), run(false));
}

// Any graph, any load, small buffers: everything arrives once, nothing is lost.
TEST(PacketNetwork, RandomNetworksNeverStopNorLose) {
  Rng rng(11);
  for (int round = 0; round < 40; ++round) {
    Topology t;
    std::vector<uint32_t> switches;
    for (uint32_t i = 0; i < 2 + rng.below(6); ++i) {
      switches.push_back(t.add_switch("s" + std::to_string(i)));
      if (i > 0) t.connect(switches[rng.below(i)], switches[i], {});
    }
    for (uint64_t i = rng.below(8); i > 0; --i) {
      const uint32_t a = switches[rng.below(switches.size())];
      const uint32_t b = switches[rng.below(switches.size())];
      if (a != b)
        t.connect(a, b, {.bits_per_s = rng.bernoulli(0.5) ? 10'000'000'000U : 40'000'000'000U});
    }
    constexpr uint32_t kHosts = 8;
    for (uint32_t i = 0; i < kHosts; ++i) {
      t.connect(t.add_host("h" + std::to_string(i)), switches[rng.below(switches.size())],
                {.delay = static_cast<Picos>(rng.between(1, 5)) * kMicrosecond});
    }
    Parameters p;
    p.control = rng.bernoulli(0.5) ? Control::kNone : Control::kDcqcn;
    p.buffer_bytes = 600'000;
    p.seed = rng.next();
    Network network(t, p);
    uint64_t bytes = 0;
    constexpr uint64_t kFlows = 60;
    for (uint64_t tag = 0; tag < kFlows; ++tag) {
      const auto from = static_cast<uint32_t>(rng.below(kHosts));
      const auto to = static_cast<uint32_t>((from + 1 + rng.below(kHosts - 1)) % kHosts);
      const Flow flow{.tag = tag,
                      .source = from,
                      .destination = rng.bernoulli(0.5) && from != 0 ? 0 : to,
                      .bytes = rng.between(1, 100'000),
                      .start = static_cast<Picos>(rng.below(300)) * kMicrosecond};
      bytes += flow.bytes;
      network.start(flow);
    }
    Completions done;
    network.advance(kNever, done);
    const Counters& k = network.counters();
    ASSERT_EQ(done.all.size(), kFlows) << "round " << round;
    for (const auto& [tag, times] : done.times) ASSERT_EQ(times, 1);
    ASSERT_EQ(k.drops, 0U) << "round " << round;
    ASSERT_EQ(k.payload_bytes_delivered, bytes);
    ASSERT_EQ(k.payload_bytes_sent, bytes);
    ASSERT_EQ(network.unfinished(), 0U);
  }
}

}  // namespace
}  // namespace cairn::net
