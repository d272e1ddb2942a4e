// SPDX-License-Identifier: Apache-2.0
#include "model/net/tcp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "model/net/testing.h"

namespace cairn::net {
namespace {

TEST(TcpState, IslandsJoinWhenTheGapIsFilled) {
  TcpState tcp;
  EXPECT_EQ(tcp.arrived(0, 100, 200), 0U);
  EXPECT_EQ(tcp.arrived(0, 300, 400), 0U);
  EXPECT_EQ(tcp.islands.size(), 2U);
  EXPECT_EQ(tcp.arrived(0, 200, 300), 0U);
  EXPECT_EQ(tcp.islands.size(), 1U);
  EXPECT_EQ(tcp.arrived(0, 0, 100), 400U);
  EXPECT_TRUE(tcp.islands.empty());
  EXPECT_EQ(tcp.arrived(400, 100, 200), 400U);
}

TEST(TcpState, AnyOrderOfArrivalEndsWhole) {
  Rng rng(2);
  for (int round = 0; round < 50; ++round) {
    std::vector<uint64_t> pieces(40);
    for (size_t i = 0; i < pieces.size(); ++i) pieces[i] = i;
    for (size_t i = pieces.size() - 1; i > 0; --i) std::swap(pieces[i], pieces[rng.below(i + 1)]);
    TcpState tcp;
    uint64_t expected = 0;
    for (const uint64_t piece : pieces)
      expected = tcp.arrived(expected, piece * 10, piece * 10 + 10);
    EXPECT_EQ(expected, 400U);
    EXPECT_TRUE(tcp.islands.empty());
  }
}

// RFC 9438, figure 1: W(t) = C (t - K)^3 + W_max, K = cbrt(W_max (1 - beta) / C).
TEST(TcpWindow, CubicFollowsItsCurve) {
  Parameters p = tcp_parameters(Control::kCubic);
  p.tcp.window_bytes_max = 1ULL << 30;
  p.tcp.initial_window_packets = 1000;
  TcpWindow window(p);
  window.lost(p);
  const double top = 1000;
  const double k = std::cbrt(top * (1 - p.tcp.cubic_beta) / p.tcp.cubic_c);
  constexpr Picos kRoundTrip = 100 * kMillisecond;  // long: or Reno would be faster
  Picos now = 0;
  for (double t = 0; t < 15; t += 0.1) {
    const uint64_t packets = window.bytes() / p.payload_bytes;
    for (uint64_t i = 0; i < packets; ++i) {
      window.acknowledged(
          {.now = now, .acked = 1, .newly = p.payload_bytes, .sent = 1, .round_trip = kRoundTrip},
          p);
    }
    const double curve = p.tcp.cubic_c * std::pow(t + 0.1 - k, 3) + top;
    EXPECT_NEAR(static_cast<double>(window.bytes()) / p.payload_bytes, curve, 0.02 * curve) << t;
    now += kRoundTrip;
  }
}

TEST(TcpWindow, DctcpCutsByHalfOfAlpha) {
  const Parameters p = tcp_parameters(Control::kDctcp);
  TcpWindow window(p);
  double alpha = 1;
  uint64_t acked = 0;
  // One in four windows has marks on everything: alpha settles at their part.
  for (int i = 0; i < 400; ++i) {
    acked += 10'000;
    const bool marked = i % 4 == 0;
    window.acknowledged({.now = i, .acked = acked, .newly = 1000, .sent = acked, .marked = marked},
                        p);
    alpha += p.tcp.dctcp_gain * ((marked ? 1.0 : 0.0) - alpha);
    EXPECT_NEAR(window.alpha(), alpha, 1e-12);
  }
  EXPECT_NEAR(window.alpha(), 0.25, 0.05);
  const double before = static_cast<double>(window.bytes());
  window.acknowledged(
      {.now = 0, .acked = acked + 10'000, .newly = 1000, .sent = acked + 20'000, .marked = true},
      p);
  EXPECT_NEAR(static_cast<double>(window.bytes()), before * (1 - window.alpha() / 2),
              p.payload_bytes);
}

// A few long flows to one host; how deep its queue is, after the start.
uint64_t queue_of(const Parameters& p, Completions& done, double& fairness) {
  Network network(star(5), p);
  start_incast(network, 4, 20'000'000);
  network.advance(200 * kMillisecond, done);
  EXPECT_EQ(done.all.size(), 4U);
  Picos first = kNever;
  for (const FlowDone& one : done.all) first = std::min(first, one.finished);
  fairness = static_cast<double>(first) / static_cast<double>(done.last());
  uint64_t deepest = 0;
  for (const PortCounters& port : network.counters().ports) {
    const auto& bins = port.queue_bytes.bins();
    for (size_t i = 20; i < std::min<size_t>(bins.size(), 50); ++i)
      deepest = std::max(deepest, bins[i]);
  }
  return deepest;
}

TEST(Tcp, DctcpKeepsTheQueueNearItsThreshold) {
  Parameters p = tcp_parameters(Control::kDctcp);
  p.bin = kMillisecond;
  Completions done;
  double fairness = 0;
  const uint64_t deepest = queue_of(p, done, fairness);
  EXPECT_GT(deepest, 80'000U);
  EXPECT_LT(deepest, 180'000U);
  EXPECT_GT(fairness, 0.85);
  // 80 MB with headers at 10 Gb/s are 68 ms.
  EXPECT_LT(done.last(), 75 * kMillisecond);
}

TEST(Tcp, CubicFillsTheQueueAndRecoversFromLoss) {
  Parameters p = tcp_parameters(Control::kCubic);
  p.bin = kMillisecond;
  Completions done;
  double fairness = 0;
  const uint64_t deepest = queue_of(p, done, fairness);
  EXPECT_GT(deepest, 350'000U);
  EXPECT_LE(deepest, p.queue_bytes_max);
  EXPECT_GT(fairness, 0.6);
  EXPECT_LT(done.last(), 85 * kMillisecond);
}

TEST(Tcp, EveryByteArrivesOnceWhateverIsLost) {
  Rng rng(9);
  for (int round = 0; round < 20; ++round) {
    Parameters p = tcp_parameters(rng.bernoulli(0.5) ? Control::kCubic : Control::kDctcp);
    p.queue_bytes_max = rng.between(5'000, 60'000);
    p.tcp.packets_per_ack = static_cast<uint32_t>(rng.between(1, 2));
    Network network(star(9), p);
    uint64_t bytes = 0;
    for (uint32_t i = 1; i <= 8; ++i) {
      const uint64_t size = rng.between(1, 400'000);
      bytes += size;
      network.start({.tag = i, .source = i, .destination = 0, .bytes = size});
    }
    Completions done;
    network.advance(10 * kSecond, done);
    ASSERT_EQ(done.all.size(), 8U) << "round " << round;
    EXPECT_EQ(network.counters().payload_bytes_delivered, bytes);
  }
}

TEST(Tcp, DelayedAcknowledgementsAreHalfAsMany) {
  Parameters p = tcp_parameters(Control::kCubic);
  const auto acks = [&](uint32_t packets) {
    p.tcp.packets_per_ack = packets;
    Network network(star(2), p);
    network.start({.source = 0, .destination = 1, .bytes = 1448 * 1000});
    Completions done;
    network.advance(kNever, done);
    EXPECT_EQ(done.all.size(), 1U);
    return network.counters().acks;
  };
  EXPECT_EQ(acks(1), 1000U);
  EXPECT_EQ(acks(2), 500U);
}

}  // namespace
}  // namespace cairn::net
