// SPDX-License-Identifier: Apache-2.0
#include "service/common/trial_drive.h"

#include <algorithm>
#include <cstring>

namespace cairn::drive {

namespace {

std::vector<std::byte> joined(std::span<const MutableBytes> pieces) {
  std::vector<std::byte> whole;
  for (const MutableBytes piece : pieces) whole.insert(whole.end(), piece.begin(), piece.end());
  return whole;
}

void spread(Bytes from, std::span<const MutableBytes> pieces) {
  for (const MutableBytes piece : pieces) {
    std::ranges::copy(from.first(piece.size()), piece.begin());
    from = from.subspan(piece.size());
  }
}

}  // namespace

task::Task<void> TrialDrive::serve(DriveOp& op) {
  const Result<void> done = co_await run(op);
  op.complete(done);
}

task::Task<Result<void>> TrialDrive::run(DriveOp& op) {
  using Kind = Request::Kind;
  const Request& request = op.request;
  if (request.kind == Kind::kFlush) co_return Result<void>();
  if (request.kind == Kind::kDiscard || request.kind == Kind::kWriteZeroes) {
    co_return clear(request);
  }
  if (request.kind == Kind::kWrite) co_return write(request, joined(op.data()));
  std::vector<std::byte> found;
  const Result<void> done = co_await read(op, found);
  if (!done) co_return done;
  if (request.kind == Kind::kRead) {
    spread(found, op.data());
    co_return done;
  }
  if (found != joined(op.data())) co_return fail(Errc::kMismatch, "compare on trial");
  if (request.kind == Kind::kCompareAndWrite) co_return write(request, joined(op.second()));
  co_return done;
}

task::Task<Result<void>> TrialDrive::read(const DriveOp& op, std::vector<std::byte>& into) {
  const uint32_t size = geometry().block_size;
  Request request = op.request;
  request.kind = Request::Kind::kRead;
  request.durable = false;
  request.unstable_memory = false;
  into.resize(request.blocks * size);
  const MutableBytes piece(into);
  const Result<void> done = co_await below_.submit(request, {&piece, 1}, {}, op.token());
  const uint64_t first = request.lba.value();
  for (auto at = written_.lower_bound(first);
       at != written_.end() && at->first < first + request.blocks; ++at) {
    const MutableBytes block = piece.subspan((at->first - first) * size, size);
    std::ranges::fill(block, std::byte{0});
    std::ranges::copy(at->second, block.begin());
  }
  co_return done;
}

Result<void> TrialDrive::write(const Request& request, Bytes from) {
  const uint32_t size = geometry().block_size;
  if ((written_.size() + request.blocks) * size > kTrialBytesMax) {
    return fail(Errc::kNoSpace, "a trial writes only so much");
  }
  for (uint64_t i = 0; i < request.blocks; ++i) {
    const Bytes block = from.subspan(i * size, size);
    written_[request.lba.value() + i].assign(block.begin(), block.end());
  }
  return {};
}

Result<void> TrialDrive::clear(const Request& request) {
  if ((written_.size() + request.blocks) * geometry().block_size > kTrialBytesMax) {
    return fail(Errc::kNoSpace, "a trial writes only so much");
  }
  for (uint64_t i = 0; i < request.blocks; ++i) written_[request.lba.value() + i].clear();
  return {};
}

}  // namespace cairn::drive
