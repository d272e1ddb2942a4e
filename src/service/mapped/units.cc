// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/units.h"

#include "base/check.h"

namespace cairn::drive {

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
}

}  // namespace cairn::drive
