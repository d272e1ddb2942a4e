// SPDX-License-Identifier: Apache-2.0
#include "drive/drive.h"

namespace cairn::drive {

void DriveOp::start() {
  if (Result<void> checked = drive_->check(*this); !checked) return complete(checked);
  if (request.kind != Request::Kind::kFlush && request.blocks == 0) return complete({});
  drive_->start(*this);
}
void DriveOp::cancel() { drive_->cancel(*this); }

Request Drive::range(Request::Kind kind, Lba lba, size_t bytes) const {
  return {.kind = kind, .lba = lba, .blocks = bytes / geometry().block_size};
}

Result<void> Drive::check(const DriveOp& op) const {
  using Kind = Request::Kind;
  const Request& request = op.request;
  if (request.kind == Kind::kFlush) return {};
  const Geometry& shape = geometry();
  if (request.lba.value() > shape.blocks || request.blocks > shape.blocks - request.lba.value()) {
    return fail(Errc::kInvalid, "drive range is past the end");
  }
  if (request.kind == Kind::kDiscard || request.kind == Kind::kWriteZeroes) return {};
  if (request.blocks > shape.transfer_blocks) {
    return fail(Errc::kInvalid, "drive transfer is larger than the drive's maximum");
  }
  const uint64_t bytes = request.blocks * shape.block_size;
  const bool two = request.kind == Kind::kCompareAndWrite;
  if (total_size(op.data()) != bytes || (two && total_size(op.second()) != bytes)) {
    return fail(Errc::kInvalid, "drive data does not match the range");
  }
  return {};
}

task::Task<Result<void>> Drive::resize(uint64_t) {
  co_return fail(Errc::kUnsupported, "this drive keeps its size");
}

task::Task<void> Drive::close() { co_return; }

}  // namespace cairn::drive
