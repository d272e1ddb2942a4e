// SPDX-License-Identifier: Apache-2.0
// Errors from below at each step of a life, for every service: requests then fail or succeed, and
// nothing is wrong later. Whatever request of whatever disk fails, from the first of the opening to
// the last of the closing, the drive opens again and holds what it must.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "stack/promise_host.h"
#include "stack/subjects.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

using DiskKind = env::DiskOp::Kind;

LoadOptions short_life(const std::string& stack) {
  return {.stack = stack,
          .requests = 60,
          .cancel_share = 0,
          .errors_are_wrong = false,
          .may_not_open = true,
          .flush_share = 0.05};
}

bool takes_space(DiskKind kind) {
  return kind == DiskKind::kWrite || kind == DiskKind::kWriteZeroes;
}

// How many requests reach disks in a life without errors.
uint64_t count_steps(const std::string& stack, uint64_t seed) {
  PromiseHost host(seed, short_life(stack));
  host.breaks_late = false;
  host.set_break([](uint64_t, const env::DiskOp::Request&) { return Result<void>(); });
  host.start();
  EXPECT_TRUE(host.runs_to_its_end()) << stack;
  EXPECT_EQ(host.failure(), "");
  EXPECT_EQ(host.load().finished(), 1u) << stack;
  return host.asked();
}

struct Trouble {
  uint64_t first = 0;
  uint64_t count = 1;  // requests that fail
  Errc code = Errc::kIo;
};

void expect_survives(const std::string& stack, uint64_t seed, const Trouble& trouble) {
  PromiseHost host(seed, short_life(stack));
  host.breaks_late = false;
  host.set_break([&](uint64_t number, const env::DiskOp::Request& request) -> Result<void> {
    const bool is_time = number >= trouble.first && number - trouble.first < trouble.count;
    if (!is_time || (trouble.code == Errc::kNoSpace && !takes_space(request.kind))) return {};
    return fail(trouble.code, "an error of the test");
  });
  host.start();
  // Parity waits for legs without which it is neither old nor new, however long they fail.
  const bool has_ended = host.runs_to_its_end(60_s);
  host.stop_breaking();
  ASSERT_TRUE(has_ended || host.runs_to_its_end())
      << stack << " does not end: seed " << seed << ", from request " << trouble.first << " on, "
      << trouble.count << host.report();
  // Where errors keep a service from writing its map even when it closes, what was not flushed is
  // gone as it is when power fails; which it does after some lives.
  host.load().crashed();
  if (host.rng().bernoulli(0.5)) host.crash();
  host.load().must_succeed();
  host.start();
  ASSERT_TRUE(host.runs_to_its_end()) << stack << " does not end";
  ASSERT_EQ(host.failure(), "") << "seed " << seed << ", error " << static_cast<int>(trouble.code)
                                << " from request " << trouble.first << " on, " << trouble.count;
}

class EveryServiceErrors : public testing::TestWithParam<Subject> {
 protected:
  void expect_survives_each(Errc code, uint64_t seeds) {
    const uint64_t steps = count_steps(GetParam().stack, 1);
    const std::vector<uint64_t> all = sim::seeds_to_run(seeds);
    for (const uint64_t seed : all) {
      Rng rng(seed);
      const uint64_t share = std::max<uint64_t>(steps / all.size(), 1);
      const uint64_t first = ((seed - 1) * share + rng.below(share)) % steps;
      constexpr uint64_t kCounts[] = {1, 1, 2, 20, UINT64_MAX};
      expect_survives(
          GetParam().stack, seed,
          {.first = first, .count = kCounts[rng.below(std::size(kCounts))], .code = code});
      if (HasFatalFailure()) return;
    }
  }
};
TEST_P(EveryServiceErrors, AnIoErrorAtAnyStepHarmsNoBlock) { expect_survives_each(Errc::kIo, 40); }
TEST_P(EveryServiceErrors, NoSpaceAtAnyStepHarmsNoBlock) {
  expect_survives_each(Errc::kNoSpace, 30);
}
INSTANTIATE_TEST_SUITE_P(Promises, EveryServiceErrors, testing::ValuesIn(every_service()),
                         subject_name);

}  // namespace
}  // namespace cairn::stack
