// SPDX-License-Identifier: Apache-2.0
#include "service/common/write_intent.h"

#include <utility>

#include "base/check.h"

namespace cairn::drive {

WriteIntent::WriteIntent(Keeper& keeper, const RegionSet& marked)
    : keeper_(keeper),
      wanted_(marked),
      marked_(marked),
      touched_(marked.size()),
      changing_(marked.size()) {}

bool WriteIntent::are_marked(Regions regions) const {
  for (uint64_t i = 0; i < regions.count; ++i) {
    if (!marked_.has(regions.first + i)) return false;
  }
  return true;
}

void WriteIntent::note_change(Regions regions) {
  for (uint64_t i = 0; i < regions.count; ++i) {
    ++changing_[regions.first + i];
    touched_.add(regions.first + i);
  }
}

bool WriteIntent::enter_marked(Regions regions) {
  if (!are_marked(regions)) return false;
  note_change(regions);
  return true;
}

task::Task<Result<void>> WriteIntent::enter(Regions regions) {
  note_change(regions);
  if (are_marked(regions)) co_return Result<void>();
  for (uint64_t i = 0; i < regions.count; ++i) wanted_.add(regions.first + i);
  Result<void> done = co_await turn_.acquire();
  CHECK(done.has_value());
  if (!are_marked(regions)) done = co_await save(true);
  turn_.release();
  co_return done;
}

void WriteIntent::leave(Regions regions) {
  for (uint64_t i = 0; i < regions.count; ++i) {
    --changing_[regions.first + i];
    touched_.add(regions.first + i);
  }
}

task::Task<Result<void>> WriteIntent::mark_all() {
  wanted_.add_all();
  const Result<void> done = co_await save_again();
  co_return done;
}

task::Task<Result<void>> WriteIntent::save_again() {
  Result<void> done = co_await turn_.acquire();
  CHECK(done.has_value());
  done = co_await save(true);
  turn_.release();
  co_return done;
}

RegionSet WriteIntent::idle() {
  const RegionSet recent = touched_;
  RegionSet found = unchanging();
  found.remove(recent);
  return found;
}

RegionSet WriteIntent::unchanging() {
  RegionSet found(marked_.size());
  for (size_t region = marked_.next(0); region < marked_.size();
       region = marked_.next(region + 1)) {
    if (changing_[region] == 0) found.add(region);
  }
  touched_ = RegionSet(marked_.size());
  return found;
}

task::Task<void> WriteIntent::forget(RegionSet regions, bool durable) {
  const Result<void> turn = co_await turn_.acquire();
  CHECK(turn.has_value());
  if (keeper_.may_forget()) {
    regions.remove(touched_);
    wanted_.remove(regions);
    marked_.remove(regions);
    const Result<void> saved = co_await save(durable);
    (void)saved;
  }
  turn_.release();
}

task::Task<Result<void>> WriteIntent::save(bool durable) {
  const RegionSet marks = wanted_;
  Result<void> done = co_await keeper_.save_marks(marks, durable);
  // Marks that a crash may take are no marks.
  if (done && durable) marked_.add(marks);
  co_return done;
}

}  // namespace cairn::drive
