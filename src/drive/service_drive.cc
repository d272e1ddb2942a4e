// SPDX-License-Identifier: Apache-2.0
#include "drive/service_drive.h"

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

task::Task<void> ServiceDrive::close() {
  co_await gate_.close();
  for (std::unique_ptr<Drive>& drive : below_) co_await drive->close();
}

}  // namespace cairn::drive
