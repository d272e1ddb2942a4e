// SPDX-License-Identifier: Apache-2.0
#include "snis/iterations.h"

#include <gtest/gtest.h>

#include <set>
#include <span>
#include <vector>

#include "base/rng.h"
#include "snis/coupled.h"
#include "snis/models_testing.h"
#include "snis/state_format.h"

namespace cairn::snis {
namespace {

std::vector<trace::Record> requests_of(uint64_t seed, size_t count) {
  Rng rng(seed);
  std::vector<trace::Record> requests;
  Nanos at = 0;
  for (size_t i = 0; i < count; ++i) {
    at += static_cast<Nanos>(rng.below(1500));
    requests.push_back({.arrival = at,
                        .bytes = static_cast<uint32_t>(rng.between(1, 900)),
                        .write = rng.bernoulli(0.5),
                        .initiator = 0,
                        .target = static_cast<uint32_t>(rng.below(2))});
  }
  return requests;
}

class SnisRun : public testing::Test {
 protected:
  Iterations run(const RunOptions& options) {
    Iterations run(models_, requests_, storage_, options);
    while (!run.done()) run.advance();
    return run;
  }
  QueueModels models_{2};
  std::vector<trace::Record> requests_ = requests_of(1, 400);
  LocalStorage storage_{models_, requests_};
};

TEST_F(SnisRun, StopsWhereTheRuleSays) {
  EXPECT_EQ(run({.until = Until::kCount, .iterations = 4}).steps().size(), 4U);
  const Iterations stable = run({.until = Until::kStable, .iterations = 50});
  ASSERT_TRUE(stable.convergence().at());
  EXPECT_EQ(static_cast<int>(stable.steps().size()), *stable.convergence().at() + 1);
  const Iterations fixed = run({.until = Until::kUnchanged, .iterations = 500});
  EXPECT_TRUE(fixed.unchanged());
  EXPECT_EQ(fixed.last().times, run_coupled(models_, requests_).times);
  EXPECT_GT(fixed.steps().size(), stable.steps().size());
}

TEST_F(SnisRun, GoesOnFromStateAsIfNeverInterrupted) {
  const RunOptions options{.until = Until::kUnchanged, .iterations = 500};
  const Iterations whole = run(options);
  Iterations first(models_, requests_, storage_, options);
  std::vector<std::string> saved;
  for (uint32_t i = 0; i < 3; ++i) {
    first.advance();
    saved.push_back(encode_state(first.last(),
                                 {.iteration = i, .fingerprint = 9, .requests = requests_.size()}));
  }
  Iterations second(models_, requests_, storage_, options);
  for (uint32_t i = 0; i < 3; ++i) {
    Result<Iteration> state =
        decode_state(saved[i], {.iteration = i, .fingerprint = 9, .requests = requests_.size()});
    ASSERT_TRUE(state);
    second.take(std::move(*state));
  }
  while (!second.done()) second.advance();
  EXPECT_EQ(second.last(), whole.last());
  ASSERT_EQ(second.steps().size(), whole.steps().size());
  for (size_t i = 1; i < whole.steps().size(); ++i) {
    EXPECT_EQ(second.steps()[i].distance->criterion, whole.steps()[i].distance->criterion);
  }
}

TEST_F(SnisRun, StateThatIsDamagedOrOfAnotherRunIsRefused) {
  Iteration iteration{.times = Times(3), .network = {.bin = 7, .read_bytes = {1, 2}}};
  const StateKey key{.iteration = 2, .fingerprint = 5, .requests = 3};
  const std::string bytes = encode_state(iteration, key);
  EXPECT_EQ(*decode_state(bytes, key), iteration);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(decode_state(bad, key)) << i;
    EXPECT_FALSE(decode_state(bytes.substr(0, i), key)) << i;
  }
  EXPECT_EQ(decode_state(bytes, {.iteration = 3, .fingerprint = 5, .requests = 3}).error(),
            Errc::kMismatch);
  EXPECT_EQ(decode_state(bytes, {.iteration = 2, .fingerprint = 6, .requests = 3}).error(),
            Errc::kMismatch);
}

TEST_F(SnisRun, TheFingerprintSeesEveryFieldThatARunReadsAndTheSystem) {
  const uint64_t one = fingerprint(requests_, "drive");
  EXPECT_EQ(fingerprint(requests_, "drive"), one);
  EXPECT_NE(fingerprint(requests_, "other"), one);
  const auto changed = [this](auto change) {
    std::vector<trace::Record> requests = requests_;
    change(requests[7]);
    return fingerprint(requests, "drive");
  };
  // A field that is added does not compile here, so that nobody forgets it.
  [[maybe_unused]] const auto& [arrival, offset, bytes, volume, write, initiator, target] =
      requests_[7];
  const std::set<uint64_t> seen = {
      one,
      changed([](trace::Record& request) { request.arrival += 1; }),
      changed([](trace::Record& request) { request.offset += 512; }),
      changed([](trace::Record& request) { request.bytes += 512; }),
      changed([](trace::Record& request) { request.write = !request.write; }),
      changed([](trace::Record& request) { request.initiator += 1; }),
      changed([](trace::Record& request) { request.target += 1; }),
      fingerprint(std::span(requests_).first(7), "drive"),
  };
  EXPECT_EQ(seen.size(), 8u);
  EXPECT_EQ(changed([](trace::Record& request) { request.volume += 1; }), one)
      << "shaping a trace has made initiator and target of it";
}

}  // namespace
}  // namespace cairn::snis
