// SPDX-License-Identifier: Apache-2.0
#include "volume/intent_log.h"

#include <utility>

#include "base/check.h"

namespace cairn::volume {

using task::Task;

Result<void> IntentLog::begin(VolumeId volume, Epoch epoch, uint32_t region_extents,
                              drive::RegionSet marks) {
  Result<drive::Scratch> block = drive::Scratch::make(env_, kIntentBytes);
  if (!block) return fail(block.error());
  block_ = std::move(*block);
  record_ = {.volume = volume,
             .epoch = epoch,
             .region_extents = region_extents,
             .marks = std::move(marks)};
  return {};
}

Task<Result<void>> IntentLog::save_marks(const drive::RegionSet& marks, bool /*durable*/) {
  drive::RegionSet copy = marks;  // the caller's may change meanwhile
  const Result<void> turn = co_await turn_.acquire();
  CHECK(turn.has_value());
  const task::Units units(turn_, 1);
  record_.marks = std::move(copy);
  co_return co_await write();
}

Task<Result<void>> IntentLog::rewrite() {
  const Result<void> turn = co_await turn_.acquire();
  CHECK(turn.has_value());
  const task::Units units(turn_, 1);
  Result<void> done = co_await write();
  if (done) done = co_await write();
  co_return done;
}

// A record that failed may be there: the next one goes to its place, so that the one before stays.
Task<Result<void>> IntentLog::write() {
  IntentRecord next = record_;
  ++next.number;
  encode_intents(next, block_.bytes());
  const Result<void> done =
      co_await owner_.save_intents(block_.bytes(), next.number % kIntentRecords);
  if (done) record_.number = next.number;
  co_return done;
}

}  // namespace cairn::volume
