// SPDX-License-Identifier: Apache-2.0
#include "snis/iteration.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "snis/coupled.h"
#include "snis/models_testing.h"

namespace cairn::snis {
namespace {

trace::Record read_at(Nanos arrival, uint32_t bytes) {
  return {.arrival = arrival, .bytes = bytes, .initiator = 0, .target = 0};
}
trace::Record write_at(Nanos arrival, uint32_t bytes) {
  return {.arrival = arrival, .bytes = bytes, .write = true, .initiator = 0, .target = 0};
}

// A drive needs a nanosecond for a byte of a read and two for one of a write; the wire needs one.
TEST(Iteration, FollowsTheEquationsInAnExampleByHand) {
  const QueueModels models(1);
  const std::vector<trace::Record> requests = {read_at(0, 100), write_at(10, 50), read_at(30, 20)};
  LocalStorage storage(models, requests);

  const Iteration zero = iterate(models, requests, storage, nullptr);
  // Storage: the read until 100, the write (at A = 10) until 200, the other read until 220.
  EXPECT_EQ(zero.times.storage_arrival, (std::vector<Nanos>{0, 10, 30}));
  EXPECT_EQ(zero.times.storage_departure, (std::vector<Nanos>{100, 200, 220}));
  // Network: the write 10 to 60, the reads from 100 and from 220.
  EXPECT_EQ(zero.times.network_arrival, (std::vector<Picos>{100'000, 10'000, 220'000}));
  EXPECT_EQ(zero.times.network_departure, (std::vector<Picos>{200'000, 60'000, 240'000}));

  const Iteration one = iterate(models, requests, storage, &zero);
  // The write comes to its drive when the network brought it, in the next whole nanosecond; the
  // second read is before it now.
  EXPECT_EQ(one.times.storage_arrival, (std::vector<Nanos>{0, 61, 30}));
  EXPECT_EQ(one.times.storage_departure, (std::vector<Nanos>{100, 220, 120}));
  EXPECT_EQ(one.times.network_arrival, (std::vector<Picos>{100'000, 10'000, 120'000}));
  EXPECT_EQ(one.times.network_departure, (std::vector<Picos>{200'000, 60'000, 220'000}));

  const Movement moved = movement(requests, zero.times, one.times);
  EXPECT_EQ(moved.moved, 1U);
  EXPECT_EQ(moved.mean_abs_ns, 51);
  EXPECT_EQ(moved.max_abs_ns, 51);
  EXPECT_EQ(moved.first_ns, 10);

  const Iteration two = iterate(models, requests, storage, &one);
  EXPECT_EQ(movement(requests, one.times, two.times).moved, 0U);
  EXPECT_EQ(two.times, one.times);
  EXPECT_EQ(run_coupled(models, requests).times, two.times);
}

std::vector<trace::Record> random_requests(uint64_t seed, size_t count, uint32_t targets) {
  Rng rng(seed);
  std::vector<trace::Record> requests;
  Nanos at = 0;
  for (size_t i = 0; i < count; ++i) {
    at += static_cast<Nanos>(rng.below(12));
    trace::Record request = rng.bernoulli(0.5) ? read_at(at, 1) : write_at(at, 1);
    request.bytes = static_cast<uint32_t>(rng.between(1, 8));
    request.target = static_cast<uint32_t>(rng.below(targets));
    requests.push_back(request);
  }
  return requests;
}

// Sizes and times are small numbers, so that many events fall on one moment.
TEST(Iteration, UntilNothingChangesIsWhatOneLoopGives) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const uint32_t targets = 1 + seed % 3;
    const QueueModels models(targets, seed % 2 == 0 ? 1000 : 700);
    const std::vector<trace::Record> requests = random_requests(seed, 300, targets);
    LocalStorage storage(models, requests);
    Iteration now = iterate(models, requests, storage, nullptr);
    Nanos first_change = -1;
    int iterations = 1;
    for (;; ++iterations) {
      ASSERT_LT(iterations, 1000);
      Iteration next = iterate(models, requests, storage, &now);
      const Movement moved = movement(requests, now.times, next.times);
      now = std::move(next);
      if (moved.moved == 0) break;
      EXPECT_GE(moved.first_ns, first_change) << "a longer beginning is exact each time";
      first_change = moved.first_ns;
    }
    EXPECT_EQ(now.times, run_coupled(models, requests).times) << "seed " << seed;
  }
}

TEST(Iteration, DifferencesCountRequestsAndTheirEnds) {
  const std::vector<trace::Record> requests = {read_at(0, 1), write_at(0, 1), read_at(0, 1)};
  Times one(3);
  one.network_departure = {5000, 1000, 7000};
  one.storage_departure = {1, 90, 1};
  Times other = one;
  EXPECT_EQ(differences(requests, one, other).requests, 0U);
  other.network_departure[0] = 8000;
  other.storage_departure[1] = 60;
  const Differences found = differences(requests, one, other);
  EXPECT_EQ(found.requests, 2U);
  EXPECT_DOUBLE_EQ(found.mean_abs_ns, 11);
  EXPECT_DOUBLE_EQ(found.max_abs_ns, 30);
}

TEST(Iteration, TheOrderOfTargetsChangesNothing) {
  const QueueModels models(5);
  const std::vector<trace::Record> requests = random_requests(3, 500, 5);
  LocalStorage forward(models, requests);
  LocalStorage backward(models, requests, [](size_t count, const auto& job) {
    for (size_t i = count; i-- > 0;) job(i);
  });
  EXPECT_EQ(iterate(models, requests, forward, nullptr).times,
            iterate(models, requests, backward, nullptr).times);
}

TEST(Iteration, AWriteThatTheNetworkLostNeverComesToItsDrive) {
  const QueueModels models(1);
  const std::vector<trace::Record> requests = {write_at(0, 10), read_at(5, 10)};
  LocalStorage storage(models, requests);
  Iteration before = iterate(models, requests, storage, nullptr);
  before.times.network_departure[0] = kNever;
  const Iteration after = iterate(models, requests, storage, &before);
  EXPECT_EQ(after.times.storage_departure[0], kNever);
  EXPECT_EQ(after.times.storage_departure[1], 15);
}

}  // namespace
}  // namespace cairn::snis
