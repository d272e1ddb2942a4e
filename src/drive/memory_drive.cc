// SPDX-License-Identifier: Apache-2.0
#include "drive/memory_drive.h"

#include <cstring>
#include <utility>

namespace cairn::drive {

Result<std::unique_ptr<MemoryMedium>> MemoryMedium::make(env::Env& env, uint64_t size,
                                                         uint32_t block_size) {
  if (size == 0 || !is_aligned(size, block_size)) {
    return fail(Errc::kInvalid, "drive size (a multiple of the block size)");
  }
  Result<std::unique_ptr<env::Memory>> memory = env.map_memory(size);
  if (!memory) return fail(memory.error());
  return std::unique_ptr<MemoryMedium>(
      new MemoryMedium(std::move(*memory), block_size, env.core_count()));
}

MemoryDrive::MemoryDrive(env::Env& env, MemoryMedium& medium)
    : env_(env), medium_(medium), ranges_(medium.ranges().on(env.core())) {
  geometry_ = {.blocks = medium.size() / medium.block_size(),
               .block_size = medium.block_size(),
               .transfer_blocks = static_cast<uint32_t>(1_MiB / medium.block_size()),
               .volatile_cache = false};
}

Result<void> MemoryDrive::compare(uint64_t offset, std::span<const MutableBytes> with) const {
  const std::byte* at = medium_.memory().bytes().data() + offset;
  for (MutableBytes piece : with) {
    if (std::memcmp(at, piece.data(), piece.size()) != 0) {
      return fail(Errc::kMismatch, "compare");
    }
    at += piece.size();
  }
  return {};
}

void MemoryDrive::start(DriveOp& op) {
  if (op.request.kind == Request::Kind::kCompareAndWrite) return gate_.spawn(run_alone(op));
  if (ranges_.has_exclusive() && op.request.kind != Request::Kind::kFlush) {
    return gate_.spawn(run_in_turn(op));
  }
  op.complete(run(op));
}

task::Task<void> MemoryDrive::run_alone(DriveOp& op) {
  SharedRanges::Alone alone(medium_.ranges(), op.request.lba.value(), op.request.blocks);
  co_await alone.enter(env_);
  const Result<void> done = run(op);
  co_await alone.leave(env_);
  op.complete(done);
}

task::Task<void> MemoryDrive::run_in_turn(DriveOp& op) {
  Ranges::Hold hold(ranges_, Ranges::Mode::kShared, op.request.lba.value(), op.request.blocks,
                    op.token());
  const Result<void> held = co_await hold;
  op.complete(held ? run(op) : held);
}

Result<void> MemoryDrive::run(const DriveOp& op) {
  using Kind = Request::Kind;
  const uint64_t offset = op.request.lba.value() * geometry_.block_size;
  std::byte* at = medium_.memory().bytes().data() + offset;
  switch (op.request.kind) {
    case Kind::kRead:
      for (MutableBytes piece : op.data()) {
        std::memcpy(piece.data(), at, piece.size());
        at += piece.size();
      }
      break;
    case Kind::kCompareAndWrite:
      if (Result<void> same = compare(offset, op.data()); !same) return same;
      [[fallthrough]];
    case Kind::kWrite:
      for (MutableBytes piece : op.request.kind == Kind::kWrite ? op.data() : op.second()) {
        std::memcpy(at, piece.data(), piece.size());
        at += piece.size();
      }
      break;
    case Kind::kCompare:
      return compare(offset, op.data());
    case Kind::kFlush:
      break;
    case Kind::kDiscard:
    case Kind::kWriteZeroes:
      medium_.memory().discard(offset, op.request.blocks * geometry_.block_size);
      break;
  }
  return {};
}

// Those who wait for their turn take the token themselves.
void MemoryDrive::cancel(DriveOp&) {}

}  // namespace cairn::drive
