// SPDX-License-Identifier: Apache-2.0
#include "service/common/service_drive.h"

#include "base/medium_id.h"
#include "base/rng.h"
#include "drive/local_opening.h"

namespace cairn::drive {

task::Task<void> ServiceDrive::serve(DriveOp& op) {
  // Nothing to do: no service has to think of ranges without an end.
  if (op.request.blocks == 0 && op.request.kind != Request::Kind::kFlush) {
    op.complete({});
    co_return;
  }
  const Result<void> done = co_await run(op);
  op.complete(done);
}

namespace {

// Of two openings that are known; 0 is not.
uint64_t combined(uint64_t one, uint64_t other) {
  return one == 0 || other == 0 ? 0 : mix64(mix64(one) ^ other) | 1;
}

// Of all together, whose media `combine_media` makes one of.
template <class Combine>
Incarnation combined_of(const std::vector<std::unique_ptr<Drive>>& drives, Combine combine_media) {
  if (drives.empty()) return {};
  Incarnation all = drives[0]->incarnation();
  for (size_t i = 1; i < drives.size(); ++i) {
    const Incarnation one = drives[i]->incarnation();
    all.medium = combine_media(all.medium, one.medium);
    all.opening = combined(all.opening, one.opening);
    all.local_opening = combined_local_opening(all.local_opening, one.local_opening);
  }
  return all;
}

}  // namespace

Incarnation ServiceDrive::incarnation() const { return combined_of(below_, &combined_medium_id); }

Incarnation ServiceDrive::labelled_incarnation() const {
  Incarnation all = combined_of(below_, &labelled_medium_id);
  // Labels are looked at when it is opened: another one meanwhile is noticed by this alone.
  for (size_t i = 1; i < below_.size(); ++i) {
    const uint64_t medium = below_[i]->incarnation().medium;
    if (medium != 0) all.opening = combined(all.opening, medium);
  }
  return all;
}

task::Task<void> ServiceDrive::close() {
  co_await gate_.close();
  for (std::unique_ptr<Drive>& drive : below_) co_await drive->close();
}

}  // namespace cairn::drive
