// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/block_commands.h"

#include <algorithm>

#include "base/bytes.h"
#include "nvme/format/dsm_format.h"
#include "nvme/format/io_format.h"

namespace cairn::fabric {

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
bool BlockCommands::discards_by_zeroes() const {
  const bool by_range = info_.discard_blocks > 0 && info_.deallocated_reads_zero;
  return !by_range && info_.zeroes_blocks > 0;
}

Result<void> BlockCommands::can_do(const Request& request) const {
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

uint64_t BlockCommands::next_blocks(const Request& request, uint64_t done) const {
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

BlockCommand BlockCommands::make(const Request& request, uint64_t first, uint32_t blocks) const {
  IoOpcode opcode = opcode_of(request.kind, discards_by_zeroes());
  if (!request.replicas.empty()) opcode = IoOpcode::kReplicatedWrite;
  BlockCommand command{.sqe = nvme::Sqe::make(opcode, info_.nsid)};
  if (opcode == IoOpcode::kFlush) return command;
  const Lba start(request.lba.value() + first);
  if (opcode == IoOpcode::kDatasetManagement) {
    nvme::DsmFields{.ranges = 1, .deallocate = true}.encode(command.sqe);
    store(command.range, nvme::DsmRange{.blocks = blocks, .start = start.value()});
    command.data = BlockCommand::Data::kRange;
    command.length = sizeof(nvme::DsmRange);
    return command;
  }
  const bool gives_back = request.kind == Kind::kDiscard || !request.keep_space;
  const bool deallocates =
      opcode == IoOpcode::kWriteZeroes && gives_back && info_.zeroes_can_deallocate;
  const bool is_durable = request.durable && request.writes();
  nvme::BlockFields{
      .start = start, .blocks = blocks, .force_unit_access = is_durable, .deallocate = deallocates}
      .encode(command.sqe);
  if (opcode == IoOpcode::kWriteZeroes) return command;
  command.data = BlockCommand::Data::kRequest;
  command.skip = static_cast<uint32_t>(first * info_.geometry.block_size);
  command.length = blocks * info_.geometry.block_size;
  return command;
}

}  // namespace cairn::fabric
