// SPDX-License-Identifier: Apache-2.0
#include "drive/filter_drive.h"

namespace cairn::drive {

task::Task<void> FilterDrive::run(DriveOp& op) {
  const Request request = op.request;
  const Result<void> done = co_await below_->submit(request, op.data(), op.second(), op.token());
  op.complete(done);
  passed(request);
}

void FilterDrive::cancel(DriveOp& op) {
  ListHook<DriveOp>& hook = op;
  if (!hook.is_linked()) return;
  hook.unlink();
  op.complete(op.cancelled());
  left();
}

task::Task<void> FilterDrive::close() {
  co_await gate_.close();
  co_await below_->close();
}

}  // namespace cairn::drive
