// SPDX-License-Identifier: Apache-2.0
#include "drive/drive.h"

namespace cairn::drive {

void DriveOp::start() {
  if (Result<void> checked = drive_->check(request, data_, second_); !checked) {
    return complete(checked);
  }
  if (request.kind != Request::Kind::kFlush && request.blocks == 0) return complete({});
  drive_->start(*this);
}
void DriveOp::cancel() { drive_->cancel(*this); }

Request Drive::range(Request::Kind kind, Lba lba, size_t bytes) const {
  return {.kind = kind, .lba = lba, .blocks = bytes / geometry().block_size};
}

Result<void> Drive::check(const Request& request, std::span<const MutableBytes> data,
                          std::span<const MutableBytes> second) const {
  using Kind = Request::Kind;
  if (request.kind == Kind::kFlush) return {};
  const Geometry& shape = geometry();
  if (request.lba.value() > shape.blocks || request.blocks > shape.blocks - request.lba.value()) {
    return fail(Errc::kInvalid, "drive range is past the end");
  }
  if (request.kind == Kind::kDiscard || request.kind == Kind::kWriteZeroes) return {};
  if (request.copy > shape.copies) return fail(Errc::kInvalid, "the drive has fewer copies");
  if (request.blocks > shape.transfer_blocks) {
    return fail(Errc::kInvalid, "drive transfer is larger than the drive's maximum");
  }
  const uint64_t bytes = request.blocks * shape.block_size;
  const bool two = request.kind == Kind::kCompareAndWrite;
  if (total_size(data) != bytes || (two && total_size(second) != bytes)) {
    return fail(Errc::kInvalid, "drive data does not match the range");
  }
  for (const Replica& replica : request.replicas) {
    if (request.kind != Kind::kWrite || !can_replicate_to(*replica.drive)) {
      return fail(Errc::kUnsupported, "the drive cannot write another one with this");
    }
    const uint64_t blocks = replica.drive->geometry().blocks;
    if (replica.lba.value() > blocks || request.blocks > blocks - replica.lba.value()) {
      return fail(Errc::kInvalid, "a replica's range is past the end of its drive");
    }
  }
  return {};
}

std::optional<Result<void>> Drive::try_now(const Request& request,
                                           std::span<const MutableBytes> data) {
  using Kind = Request::Kind;
  const bool moves_data =
      request.kind == Kind::kRead || request.kind == Kind::kWrite || request.kind == Kind::kCompare;
  if (!moves_data || request.blocks == 0) return std::nullopt;
  if (Result<void> checked = check(request, data, {}); !checked) return checked;
  Result<void> done;
  if (!run_now(request, data, done)) return std::nullopt;
  return done;
}
bool Drive::run_now(const Request&, std::span<const MutableBytes>, Result<void>&) { return false; }

Bytes Drive::lend(Lba lba, uint64_t blocks) const {
  const uint64_t all = geometry().blocks;
  if (lba.value() > all || blocks > all - lba.value()) return {};
  return lend_now(lba, blocks);
}
Bytes Drive::lend_now(Lba, uint64_t) const { return {}; }

bool Drive::hand_on(DriveOp& op, Drive& to, Relay& relay, Time now) {
  if (op.relay_ != nullptr) return false;
  op.drive_ = &to;
  op.relay_ = &relay;
  op.handed_on_ = now;
  to.start(op);
  return true;
}

Extent Drive::extent_at(Lba, uint64_t max) const { return {.blocks = max}; }

task::Task<std::expected<std::string, std::string>> Drive::tell(std::vector<std::string>) {
  co_return std::unexpected("this layer takes no commands");
}

Result<std::unique_ptr<Drive>> Drive::open_view(std::string_view) {
  return fail(Errc::kNotFound, "this layer has nothing to show beside itself");
}

task::Task<Result<void>> Drive::resize(uint64_t) {
  co_return fail(Errc::kUnsupported, "this drive keeps its size");
}

task::Task<void> Drive::close() { co_return; }

}  // namespace cairn::drive
