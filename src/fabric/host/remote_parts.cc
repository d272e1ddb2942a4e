// SPDX-License-Identifier: Apache-2.0
// How a request becomes commands.
#include <algorithm>
#include <span>

#include "base/check.h"
#include "fabric/host/remote_drive.h"
#include "nvme/format/dsm_format.h"
#include "nvme/format/io_format.h"

namespace cairn::fabric {

using drive::DriveOp;
using drive::Request;
using nvme::IoOpcode;
using Kind = drive::Request::Kind;

namespace {

IoOpcode opcode_of(Kind kind, bool discards_by_zeroes) {
  switch (kind) {
    case Kind::kRead:
      return IoOpcode::kRead;
    case Kind::kWrite:
      return IoOpcode::kWrite;
    case Kind::kCompare:
    case Kind::kCompareAndWrite:
      return IoOpcode::kCompare;
    case Kind::kFlush:
      return IoOpcode::kFlush;
    case Kind::kDiscard:
      return discards_by_zeroes ? IoOpcode::kWriteZeroes : IoOpcode::kDatasetManagement;
    case Kind::kWriteZeroes:
      return IoOpcode::kWriteZeroes;
  }
  return IoOpcode::kFlush;
}

}  // namespace

// The contract of discard demands zeroes afterwards. A deallocation gives them only where the
// namespace says so; Write Zeroes always does.
bool RemoteDrive::discards_by_zeroes() const {
  const bool by_range = info_.discard_blocks > 0 && info_.deallocated_reads_zero;
  return !by_range && info_.zeroes_blocks > 0;
}

Result<void> RemoteDrive::can_do(const Request& request) const {
  switch (request.kind) {
    case Kind::kCompare:
      if (info_.can_compare) return {};
      return fail(Errc::kUnsupported, "the target has no Compare");
    case Kind::kCompareAndWrite:
      if (info_.compare_write_blocks == 0) {
        return fail(Errc::kUnsupported, "the target has no fused Compare and Write");
      }
      if (request.blocks <= info_.compare_write_blocks) return {};
      return fail(Errc::kInvalid, "more blocks than the target compares and writes as one");
    case Kind::kWriteZeroes:
      if (info_.zeroes_blocks > 0) return {};
      return fail(Errc::kUnsupported, "the target has no Write Zeroes");
    case Kind::kDiscard:
      if (discards_by_zeroes() || (info_.discard_blocks > 0 && info_.deallocated_reads_zero)) {
        return {};
      }
      return fail(Errc::kUnsupported, "the target cannot discard so that zeroes are read");
    case Kind::kRead:
    case Kind::kWrite:
    case Kind::kFlush:
      break;
  }
  return {};
}

// How much of what is left goes into the next command. Reads and writes are cut where their address
// is a multiple of a multiple of the atomic size, so that what must be whole stays whole.
uint64_t RemoteDrive::next_blocks(const Request& request, uint64_t done) const {
  const uint64_t left = request.blocks - done;
  if (request.kind == Kind::kWriteZeroes) return std::min<uint64_t>(left, info_.zeroes_blocks);
  if (request.kind == Kind::kDiscard) {
    const uint32_t max = discards_by_zeroes() ? info_.zeroes_blocks : info_.discard_blocks;
    return std::min<uint64_t>(left, max);
  }
  if (left <= info_.command_blocks && done == 0) return left;
  const uint64_t atomic = std::min(info_.geometry.atomic_blocks, info_.command_blocks);
  const uint64_t step = align_down(info_.command_blocks, atomic);
  const uint64_t at = request.lba.value() + done;
  return std::min(left, step - at % step);
}

// Hands parts to requests, first come first served, while there are any; some are kept for urgent
// ones where these have lanes of their own.
void RemoteDrive::issue() {
  if (is_failing_) return;  // see fail_all()
  issue_from(urgent_, 0);
  issue_from(waiting_, kept_parts_);
}

void RemoteDrive::issue_from(List<DriveOp, DriveOp>& waiting, size_t kept) {
  while (DriveOp* op = waiting.front()) {
    if (op->request.kind == Kind::kCompareAndWrite) {
      if (free_count_ < kept + 2) return;
      waiting.pop_front();
      issue_pair(*op);
    } else {
      if (free_count_ <= kept) return;
      issue_part(*op);
    }
  }
}

void RemoteDrive::issue_part(DriveOp& op) {
  Progress& progress = RemoteDrive::progress(op);
  const uint64_t first = progress.issued;
  const bool is_flush = op.request.kind == Kind::kFlush;
  const auto blocks = is_flush ? 0 : static_cast<uint32_t>(next_blocks(op.request, first));
  progress.issued += blocks;
  if (progress.issued == op.request.blocks || is_flush) op.ListHook<DriveOp>::unlink();
  Part& part = take_part(op);
  fill_part(part, first, blocks);
  dispatch(part);
}

void RemoteDrive::issue_pair(DriveOp& op) {
  const auto blocks = static_cast<uint32_t>(op.request.blocks);
  progress(op).issued = blocks;
  Part& compare = take_part(op);
  Part& write = take_part(op);
  fill_part(compare, 0, blocks);
  fill_part(write, 0, blocks);
  write.sqe.opcode = static_cast<uint8_t>(IoOpcode::kWrite);
  write.data = op.second();
  compare.sqe.set_fuse(nvme::Fuse::kFirst);
  write.sqe.set_fuse(nvme::Fuse::kSecond);
  compare.changes = true;  // together they do
  compare.second = &write;
  compare.pair = &write;
  write.pair = &compare;
  write.is_second = true;
  dispatch(compare);
}

RemoteDrive::Part& RemoteDrive::take_part(DriveOp& op) {
  Part& part = *free_.pop_front();
  --free_count_;
  ++progress(op).parts;
  part.state = Part::State::kReady;
  part.op = &op;
  part.path = nullptr;
  part.pair = nullptr;
  part.second = nullptr;
  part.is_second = false;
  part.gives_up = false;
  part.failures = part.losses = part.detours = 0;
  part.sent = false;
  return part;
}

// `first` is counted from the request's own first block.
void RemoteDrive::fill_part(Part& part, uint64_t first, uint32_t blocks) {
  const DriveOp& op = *part.op;
  const Request& request = op.request;
  IoOpcode opcode = opcode_of(request.kind, discards_by_zeroes());
  if (!request.replicas.empty()) opcode = IoOpcode::kReplicatedWrite;
  part.sqe = nvme::Sqe::make(opcode, info_.nsid);
  part.changes = request.writes();
  part.no_delay = request.is_urgent();
  part.data = {};
  part.skip = part.length = 0;
  const Lba start(request.lba.value() + first);
  if (opcode == IoOpcode::kFlush) return;
  if (opcode == IoOpcode::kDatasetManagement) {
    nvme::DsmFields{.ranges = 1, .deallocate = true}.encode(part.sqe);
    store(part.range, nvme::DsmRange{.blocks = blocks, .start = start.value()});
    part.range_piece = part.range;
    part.data = std::span<const MutableBytes>(&part.range_piece, 1);
    part.length = sizeof(nvme::DsmRange);
    return;
  }
  const bool gives_back = request.kind == Kind::kDiscard || !request.keep_space;
  const bool deallocates =
      opcode == IoOpcode::kWriteZeroes && gives_back && info_.zeroes_can_deallocate;
  const bool is_durable = request.durable && request.writes();
  nvme::BlockFields{
      .start = start, .blocks = blocks, .force_unit_access = is_durable, .deallocate = deallocates}
      .encode(part.sqe);
  if (opcode == IoOpcode::kWriteZeroes) return;
  part.data = op.data();
  part.skip = static_cast<uint32_t>(first * info_.geometry.block_size);
  part.length = blocks * info_.geometry.block_size;
}

}  // namespace cairn::fabric
