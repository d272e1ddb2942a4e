// SPDX-License-Identifier: Apache-2.0
// Writes stop for a moment while a snapshot is made.
#include <limits>
#include <utility>

#include "task/deadline.h"
#include "volume/volume_drive.h"

namespace cairn::volume {

using drive::Ranges;
using task::CancelToken;
using task::Task;

namespace {

constexpr Duration kCallLimit = 5_s;
// How long requests wait for a snapshot at most: until all is durable, and for the arbiter. It goes
// on without them if it takes longer.
constexpr Duration kPauseLimit = 5_s;
constexpr Duration kFreezeLimit = 3_s;
constexpr uint64_t kEverything = std::numeric_limits<uint64_t>::max() / 2;

}  // namespace

// Asks what operators want of this volume, and does it.
Task<void> VolumeDrive::attend() {
  while (lease_->is_held() && !closing_.requested()) {
    const Time began = env_.now();
    bool is_good = false;
    {
      task::Deadline deadline(env_, began + options_.listen + kCallLimit, closing_.token());
      const Result<Asked> asked =
          co_await link_.asked(session(), options_.listen, deadline.token());
      if (!asked) note_answer(asked.error());
      is_good = asked && (!asked->snapshot.empty() || env_.now() - began >= options_.listen / 2);
      if (asked && !asked->snapshot.empty()) is_good = co_await freeze(asked->snapshot);
    }
    if (is_good) continue;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, options_.retry, closing_.token());
  }
}

// True: the arbiter has heard what came of it.
Task<bool> VolumeDrive::freeze(std::string snapshot) {
  task::Deadline deadline(env_, env_.now() + options_.open_limit, closing_.token());
  // What can be done before anybody has to wait.
  Result<void> ready = co_await flush_members(deadline.token());
  while (ready) {
    ready = co_await equalize_all(deadline.token());
    if (!ready) break;
    task::Deadline pause(env_, env_.now() + kPauseLimit, deadline.token());
    Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, 0, kEverything, pause.token());
    ready = co_await hold;
    if (ready && !unequal_.empty()) continue;
    if (ready) ready = co_await make_durable(pause.token());
    if (!ready) break;
    // Also those whose mapping is on its way here: it was sent before the arbiter was asked.
    table_.share_all();
    const Result<void> made = co_await ask_to_freeze(snapshot, true);
    table_.share_all();
    if (!made) note_answer(made.error());
    counters_.snapshots += made ? 1 : 0;
    co_return made.has_value();
  }
  if (closing_.requested() || !lease_->is_held()) co_return false;
  const Result<void> told = co_await ask_to_freeze(snapshot, false);
  co_return told.has_value();
}

Task<Result<void>> VolumeDrive::ask_to_freeze(std::string snapshot, bool is_ready) {
  task::Deadline deadline(env_, env_.now() + kFreezeLimit, closing_.token());
  co_return co_await link_.freeze(session(), std::move(snapshot), is_ready, deadline.token());
}

Task<Result<void>> VolumeDrive::equalize_all(CancelToken token) {
  for (size_t i = unequal_.next(0); i < unequal_.size(); i = unequal_.next(i + 1)) {
    const Result<void> equal = co_await equalize(static_cast<uint32_t>(i), token);
    if (!equal) co_return equal;
  }
  co_return Result<void>();
}

// While nobody writes: every leg that the arbiter knows to be in order has all that was written,
// for good.
Task<Result<void>> VolumeDrive::make_durable(CancelToken token) {
  Result<void> done = co_await flush_members(token);
  if (done) done = co_await reporter_.known(token);
  if (done) done = usable();
  // What was lost and no flush has told yet was acknowledged.
  if (done && (losses_.count() != losses_.told() || !unequal_.empty())) {
    done = fail(Errc::kIo, "a drive lost what was not flushed");
  }
  co_return done;
}

Task<Result<void>> VolumeDrive::read_blocks(uint32_t extent, uint64_t offset, MutableBytes into,
                                            CancelToken token) {
  const Part part{.extent = extent, .offset = offset, .blocks = into.size() / kBlockBytes};
  co_return co_await read_part(part, {}, {&into, 1}, token);
}

Task<Result<void>> VolumeDrive::flush_one(Member& member, CancelToken token) {
  drive::Join join;
  join.add();
  co_await flush_member(member, token, join);
  co_return co_await join.all();
}

void VolumeDrive::copy_ended(uint32_t extent, bool is_own) {
  counters_.unshared += is_own ? 1 : 0;
  if (needs_healing(extent)) must_heal(extent);
}

}  // namespace cairn::volume
