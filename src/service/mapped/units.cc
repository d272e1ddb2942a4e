// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/units.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "task/deadline.h"

namespace cairn::drive {

namespace {

// Of a walk over free units, so that it holds nobody up: a map below, or a file system, is asked.
constexpr int kRunsAtOnce = 64;
constexpr uint64_t kRunBytesMax = 1_GiB;
constexpr Duration kWalkPause = 1_ms;

}  // namespace

task::Task<Result<uint64_t>> Units::take(Journal& journal, task::CancelToken token) {
  for (;;) {
    if (const std::optional<uint64_t> unit = space_.take()) co_return *unit;
    if (returning() == 0) {
      co_return fail(Errc::kNoSpace, "all space below is in use: discard something or add a drive");
    }
    const Result<void> done = co_await bring_back(journal, token);
    if (!done) co_return fail(done.error());
  }
}

task::Task<Result<void>> Units::bring_back(Journal& journal, task::CancelToken token) {
  const uint64_t before = space_.free();
  Result<void> done = co_await journal.commit(token);
  if (!done) co_return done;
  return_some(journal);
  const bool somebody_returns_them = turn_.available() == 0;
  if (space_.free() > before || !somebody_returns_them) co_return done;
  returned_.reset();
  co_return co_await returned_.wait(token);
}

void Units::return_some(Journal& journal) {
  if (space_.on_their_way() > 0 && turn_.available() > 0) gate_.spawn(return_now(journal));
}

task::Task<void> Units::return_now(Journal& journal) {
  const Result<void> mine = co_await turn_.acquire();
  CHECK(mine.has_value());
  const task::Units turn(turn_, 1);
  const auto pop = [&] {
    const std::optional<uint64_t> unit = space_.come_back(journal.durable());
    if (unit) ++cleaning_;
    return unit;
  };
  std::optional<uint64_t> first = pop();
  while (first) {
    uint64_t count = 1;
    std::optional<uint64_t> next = pop();
    for (; next && *next == *first + count; next = pop()) ++count;
    // It is free though the drive below may keep it: nobody relies on what a free unit holds.
    [[maybe_unused]] const Result<void> done =
        co_await drive_.discard(Lba(block_of(*first)), count * options_.blocks);
    for (uint64_t i = 0; i < count; ++i) {
      const Result<void> given = space_.give(*first + i);
      CHECK(given.has_value());
    }
    cleaning_ -= count;
    first = next;
    returned_.set();
  }
  returned_.set();
}

// A discard that is on its way would hit what its unit is used for next.
task::Task<void> Units::restart() {
  const Result<void> mine = co_await turn_.acquire();
  CHECK(mine.has_value());
  const task::Units turn(turn_, 1);
  space_ = Space(options_.count);
  ++restarts_;
}

// First whether there is a hole at all.
task::Task<void> Units::reclaim_all(env::Env& env, Claim& claim) {
  for (const bool gives : {false, true}) {
    Walk walk{.gives = gives, .restarts = restarts_};
    for (bool goes_on = true; goes_on;) {
      const Result<void> slept = co_await task::sleep_for(env, kWalkPause, closing_.token());
      if (!slept) co_return;
      goes_on = co_await reclaim_some(claim, walk);
    }
    if (!walk.has_hole) co_return;
  }
}

task::Task<bool> Units::reclaim_some(Claim& claim, Walk& walk) {
  const Result<void> mine = co_await turn_.acquire(1, closing_.token());
  if (!mine) co_return false;
  const task::Units turn(turn_, 1);
  const uint64_t unit_bytes = options_.blocks * drive_.geometry().block_size;
  const uint64_t units_max = std::max<uint64_t>(kRunBytesMax / unit_bytes, 1);
  for (int runs = 0; runs < kRunsAtOnce; ++runs) {
    // The map is being read anew: what is free is not known.
    if (walk.restarts != restarts_ || closing_.requested()) co_return false;
    const Space::Run run = space_.free_run(walk.next, units_max);
    if (run.count == 0) co_return false;
    walk.next = run.first + run.count;
    const bool done = co_await discard_held(claim, run, walk);
    if (!done || (walk.has_hole && !walk.gives)) co_return false;
  }
  co_return true;
}

task::Task<bool> Units::discard_held(Claim& claim, Space::Run run, Walk& walk) {
  struct Part {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  std::vector<Part> held;
  const uint64_t end = block_of(run.first + run.count);
  for (uint64_t at = block_of(run.first); at < end;) {
    const Extent extent = drive_.extent_at(Lba(at), end - at);
    walk.has_hole |= extent.is_hole;
    if (!extent.is_hole) held.push_back({.first = at, .count = extent.blocks});
    at += extent.blocks;
  }
  if (!walk.gives || held.empty()) co_return true;
  // Nobody takes them meanwhile.
  for (uint64_t i = 0; i < run.count; ++i) {
    const Result<void> claimed = space_.claim(run.first + i);
    CHECK(claimed.has_value());
  }
  cleaning_ += run.count;
  bool is_ours = true;
  for (const Part& part : held) {
    if (closing_.requested()) break;
    if (claim.is_due()) {
      const Result<void> checked = co_await claim.check(closing_.token());
      is_ours = checked.has_value();
    }
    if (!is_ours) break;
    const Request request{.kind = Request::Kind::kDiscard,
                          .priority = Priority::kLow,
                          .lba = Lba(part.first),
                          .blocks = part.count};
    [[maybe_unused]] const Result<void> done = co_await drive_.submit(request, {});
  }
  for (uint64_t i = 0; i < run.count; ++i) {
    const Result<void> given = space_.give(run.first + i);
    CHECK(given.has_value());
  }
  cleaning_ -= run.count;
  returned_.set();
  co_return is_ours;
}

}  // namespace cairn::drive
