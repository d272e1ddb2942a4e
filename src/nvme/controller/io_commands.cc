// SPDX-License-Identifier: Apache-2.0
// The commands of an I/O queue, one function each (NVM Command Set 1.0, 3.2).
#include "nvme/controller/io_commands.h"

#include <algorithm>
#include <array>

#include "drive/copy_blocks.h"
#include "drive/scatter.h"
#include "nvme/controller/io_queue.h"
#include "nvme/format/copy_format.h"
#include "nvme/format/dsm_format.h"
#include "nvme/format/reservation_format.h"
#include "task/when_all.h"

namespace cairn::nvme {

Status status_of(const Error& error, bool writes) {
  switch (error.code()) {
    case Errc::kInvalid:
      return final(StatusCode::kInvalidField);
    case Errc::kMismatch:
      return final(StatusCode::kCompareFailure);
    case Errc::kNoSpace:
      return final(StatusCode::kCapacityExceeded);
    case Errc::kDenied:
      return final(StatusCode::kAccessDenied);
    case Errc::kUnsupported:
      return final(StatusCode::kInvalidOpcode);
    case Errc::kIo:
      return writes ? StatusCode::kWriteFault : StatusCode::kUnrecoveredReadError;
    case Errc::kCancelled:
      return StatusCode::kAbortRequested;
    case Errc::kLimit:
      return StatusCode::kCommandInterrupted;
    default:
      return StatusCode::kInternalError;
  }
}

Status data_status(const Error& error) {
  switch (error.code()) {
    case Errc::kInvalid:
      return final(StatusCode::kDataSglLengthInvalid);
    case Errc::kCorrupt:
      return StatusCode::kTransientTransportError;
    case Errc::kCancelled:
      return StatusCode::kAbortRequested;
    case Errc::kLimit:
      return StatusCode::kCommandInterrupted;
    default:
      return StatusCode::kDataTransferError;
  }
}

void count_io(CoreNamespace& space, const drive::Request& request, const Result<void>& done) {
  if (!done) {
    const Errc code = done.error().code();
    if (code == Errc::kIo || code == Errc::kCorrupt) ++space.counters.media_errors;
    if (code == Errc::kIo || code == Errc::kCorrupt || code == Errc::kNoSpace) {
      space.report(done.error());
    }
    return;
  }
  if (request.kind == drive::Request::Kind::kRead ||
      request.kind == drive::Request::Kind::kCompare) {
    ++space.counters.reads;
    space.counters.blocks_read += request.blocks;
  } else if (request.kind != drive::Request::Kind::kFlush) {
    ++space.counters.writes;
    space.counters.blocks_written += request.blocks;
  }
}

namespace {

uint64_t block_count(const CopyRange& range) { return uint64_t{range.blocks} + 1; }

// What a host sends with Register, Acquire and Release.
size_t reservation_data_size(IoOpcode opcode) {
  return opcode == IoOpcode::kReservationRelease ? sizeof(ReleaseData) : sizeof(RegisterData);
}

task::Task<Status> refuse(StatusCode code) { co_return final(code); }

// A failed flush is final: the disk may have forgotten what it was about, and a second try that
// succeeds would not bring it back.
Status flush_status(const Result<void>& done) {
  if (done) return {};
  const Status status = status_of(done.error(), true);
  return done.error() == Errc::kIo ? status.with_do_not_retry() : status;
}

}  // namespace

// Whoever goes by incarnations hears of losses that way, and takes the news from nobody else.
task::Task<Status> IoQueue::flush_one(Command& command, CoreNamespace& space) {
  const drive::Request request{.kind = drive::Request::Kind::kFlush,
                               .knows_losses = context_.knows_incarnations};
  Result<void> done = co_await space.drive->submit(request, {}, {}, command.cancel_token());
  co_return flush_status(done);
}

task::Task<Status> IoQueue::dispatch(Command& command, CoreNamespace& space) {
  switch (command.sqe.io_opcode()) {
    case IoOpcode::kRead:
    case IoOpcode::kWrite:
    case IoOpcode::kCompare:
      return transfer(command, space);
    case IoOpcode::kWriteZeroes:
      return write_zeroes(command, space);
    case IoOpcode::kDatasetManagement:
      return manage_dataset(command, space);
    case IoOpcode::kFlush:
      return flush_one(command, space);
    case IoOpcode::kReplicatedWrite:
      return replicate(command, space);
    default:
      return refuse(StatusCode::kInvalidOpcode);
  }
}

Status IoQueue::check_range(const CoreNamespace& space, Lba start, uint64_t blocks) const {
  const uint64_t size = space.drive->geometry().blocks;
  if (start.value() > size || blocks > size - start.value()) {
    return final(StatusCode::kLbaOutOfRange);
  }
  return {};
}

Status IoQueue::check_transfer(const CoreNamespace& space, const BlockFields& fields) const {
  if (Status status = check_range(space, fields.start, fields.blocks); !status.ok()) return status;
  const drive::Geometry& geometry = space.drive->geometry();
  const uint64_t bytes = uint64_t{fields.blocks} * geometry.block_size;
  if (bytes > context_.limits.transfer_bytes_max || fields.blocks > geometry.transfer_blocks) {
    return final(StatusCode::kInvalidField);
  }
  // There is no metadata, so there is nothing to protect it with.
  if (fields.protection != 0) return final(StatusCode::kInvalidProtectionInformation);
  return {};
}

task::Task<Status> IoQueue::transfer(Command& command, CoreNamespace& space) {
  using Kind = drive::Request::Kind;
  const BlockFields fields = BlockFields::decode(command.sqe);
  Status status = check_transfer(space, fields);
  if (!status.ok()) co_return status;
  drive::Request request{.kind = Kind::kRead, .lba = fields.start, .blocks = fields.blocks};
  const size_t bytes = size_t{fields.blocks} * space.drive->geometry().block_size;
  Result<Pieces> pieces = Pieces();
  if (command.sqe.io_opcode() == IoOpcode::kRead) {
    pieces = co_await command.to_host(bytes);
  } else {
    request.kind = command.sqe.io_opcode() == IoOpcode::kWrite ? Kind::kWrite : Kind::kCompare;
    request.durable = fields.force_unit_access;
    request.no_delay = fields.force_unit_access;
    pieces = co_await command.from_host(bytes);
  }
  if (!pieces) co_return data_status(pieces.error());
  request.unstable_memory = command.has_unstable_memory();
  Result<void> done = co_await space.drive->submit(request, *pieces, {}, command.cancel_token());
  count_io(space, request, done);
  co_return done ? Status() : status_of(done.error(), request.writes());
}

task::Task<Status> IoQueue::write_zeroes(Command& command, CoreNamespace& space) {
  const BlockFields fields = BlockFields::decode(command.sqe);
  Status status = check_range(space, fields.start, fields.blocks);
  if (!status.ok()) co_return status;
  if (fields.protection != 0) co_return final(StatusCode::kInvalidProtectionInformation);
  // With DEAC the blocks may be given back; they read as zeroes either way. Durable ones are never
  // a discard and a flush: a flush that fails tells that others' writes are lost, and would have
  // told it to a host that did not ask.
  const bool discards = fields.deallocate && !fields.force_unit_access;
  const drive::Request request{
      .kind = discards ? drive::Request::Kind::kDiscard : drive::Request::Kind::kWriteZeroes,
      .durable = fields.force_unit_access,
      .lba = fields.start,
      .blocks = fields.blocks};
  Result<void> done = co_await space.drive->submit(request, {}, {}, command.cancel_token());
  count_io(space, request, done);
  co_return done ? Status() : status_of(done.error(), true);
}

task::Task<Status> IoQueue::manage_dataset(Command& command, CoreNamespace& space) {
  const DsmFields fields = DsmFields::decode(command.sqe);
  if (fields.ranges > context_.limits.dsm_ranges_max) co_return final(StatusCode::kInvalidField);
  Result<Pieces> pieces = co_await command.from_host(fields.ranges * sizeof(DsmRange));
  if (!pieces) co_return data_status(pieces.error());
  // Integral hints ask for nothing; only deallocation does something.
  if (!fields.deallocate) co_return Status();
  std::array<DsmRange, kDsmRangesMax> ranges;
  drive::gather(*pieces, 0, std::as_writable_bytes(std::span(ranges)).first(total_size(*pieces)));
  for (uint32_t i = 0; i < fields.ranges; ++i) {
    Status status = check_range(space, Lba(ranges[i].start), ranges[i].blocks);
    if (!status.ok()) co_return status;
  }
  for (uint32_t i = 0; i < fields.ranges; ++i) {
    Result<void> done = co_await space.drive->discard(Lba(ranges[i].start), ranges[i].blocks,
                                                      command.cancel_token());
    if (!done) co_return status_of(done.error(), true);
  }
  co_return Status();
}

// Ranges are read into one buffer and written from it; what was copied is told in dword 0.
task::Task<Status> IoQueue::copy(Command& command, CoreNamespace& space, uint32_t& copied) {
  const CopyFields fields = CopyFields::decode(command.sqe);
  const uint32_t block_size = space.drive->geometry().block_size;
  if (fields.format != 0 || fields.ranges > kCopyRangesMax) {
    co_return final(StatusCode::kInvalidField);
  }
  if (fields.ranges > context_.limits.copy_ranges_max) {
    co_return final(StatusCode::kCommandSizeLimitExceeded);
  }
  Result<Pieces> pieces = co_await command.from_host(fields.ranges * sizeof(CopyRange));
  if (!pieces) co_return data_status(pieces.error());
  std::array<CopyRange, kCopyRangesMax> ranges;
  drive::gather(*pieces, 0, std::as_writable_bytes(std::span(ranges)).first(total_size(*pieces)));
  uint64_t blocks = 0;
  for (uint32_t i = 0; i < fields.ranges; ++i) {
    Status status = check_range(space, Lba(ranges[i].start), block_count(ranges[i]));
    if (!status.ok()) co_return status;
    blocks += block_count(ranges[i]);
  }
  if (blocks * block_size > context_.limits.copy_bytes_max) {
    co_return final(StatusCode::kCommandSizeLimitExceeded);
  }
  Status status = check_range(space, fields.destination, blocks);
  if (!status.ok()) co_return status;
  Result<MutableBytes> buffer = co_await command.scratch(blocks * block_size);
  if (!buffer) co_return data_status(buffer.error());
  size_t filled = 0;
  for (copied = 0; copied < fields.ranges; ++copied) {
    const size_t bytes = block_count(ranges[copied]) * block_size;
    Result<void> read = co_await space.drive->read(
        Lba(ranges[copied].start), buffer->subspan(filled, bytes), command.cancel_token());
    if (!read) co_return status_of(read.error(), false);
    filled += bytes;
  }
  const drive::Request request{.kind = drive::Request::Kind::kWrite,
                               .durable = fields.force_unit_access,
                               .lba = fields.destination,
                               .blocks = blocks};
  Result<void> done =
      co_await drive::write_copy(*space.drive, request, *buffer, command.cancel_token());
  count_io(space, request, done);
  if (done) co_return Status();
  copied = 0;
  co_return status_of(done.error(), true);
}

Status IoQueue::check_replica(const CoreNamespace& first, const CoreNamespace& other,
                              const ReplicateFields& fields,
                              const ReplicateFields::Replica& replica) const {
  const drive::Incarnation& told = other.told.incarnation;
  if (told.opening == 0 || replica.check != incarnation_check(told.medium, told.opening)) {
    return final(StatusCode::kInvalidField);
  }
  if (Status status = admit(other, true); !status.ok()) return status;
  if (other.read_only) return final(StatusCode::kNamespaceWriteProtected);
  if (other.drive->geometry().block_size != first.drive->geometry().block_size) {
    return final(StatusCode::kInvalidField);
  }
  BlockFields blocks = fields.blocks;
  blocks.start = fields.start_in(replica);
  return check_transfer(other, blocks);
}

task::Task<Status> IoQueue::write_replica(Command& command, CoreNamespace& space,
                                          drive::Request request, Pieces data) {
  const Result<void> done = co_await space.drive->submit(request, data, {}, command.cancel_token());
  count_io(space, request, done);
  note_answer(space);
  co_return done ? Status() : status_of(done.error(), true).with_do_not_retry();
}

// All is judged before anything is written. The namespaces are written side by side: whoever reads
// one of them before the answer may find either.
task::Task<Status> IoQueue::replicate(Command& command, CoreNamespace& space) {
  const ReplicateFields fields = ReplicateFields::decode(command.sqe);
  // The replicas of memory that changes would not be equal.
  if (command.has_unstable_memory()) co_return final(StatusCode::kInvalidOpcode);
  if (!fields.is_in_one_unit()) co_return final(StatusCode::kInvalidField);
  if (Status status = check_transfer(space, fields.blocks); !status.ok()) co_return status;
  std::array<CoreNamespace*, kReplicasMax> others{};
  for (size_t i = 0; i < kReplicasMax; ++i) {
    const ReplicateFields::Replica& replica = fields.replicas[i];
    if (replica.nsid == 0) continue;
    CoreNamespace* other = find(replica.nsid);
    if (other == nullptr) co_return final(StatusCode::kInvalidNamespaceOrFormat);
    if (other == &space || (i > 0 && other == others[0]))
      co_return final(StatusCode::kInvalidField);
    if (Status status = check_replica(space, *other, fields, replica); !status.ok()) {
      co_return status;
    }
    others[i] = other;
  }
  const Entered second(others[0]);
  const Entered third(others[1]);
  if ((others[0] != nullptr && !second) || (others[1] != nullptr && !third)) {
    co_return final(StatusCode::kInvalidNamespaceOrFormat);
  }
  const Result<Pieces> pieces =
      co_await command.from_host(size_t{fields.blocks.blocks} * space.drive->geometry().block_size);
  if (!pieces) co_return data_status(pieces.error());
  // The data may have taken long to come.
  for (size_t i = 0; i < kReplicasMax; ++i) {
    if (others[i] == nullptr) continue;
    Status status = check_replica(space, *others[i], fields, fields.replicas[i]);
    if (!status.ok()) co_return status;
  }
  if (Status status = admit(space, true); !status.ok()) co_return status;
  drive::Request request{.kind = drive::Request::Kind::kWrite,
                         .durable = fields.blocks.force_unit_access,
                         .no_delay = fields.blocks.force_unit_access,
                         .lba = fields.blocks.start,
                         .blocks = fields.blocks.blocks};
  std::vector<task::Task<Status>> writes;
  writes.reserve(1 + kReplicasMax);
  writes.push_back(write_replica(command, space, request, *pieces));
  for (size_t i = 0; i < kReplicasMax; ++i) {
    if (others[i] == nullptr) continue;
    request.lba = fields.start_in(fields.replicas[i]);
    writes.push_back(write_replica(command, *others[i], request, *pieces));
  }
  Status first_failure;
  for (const Status status : co_await task::when_all(std::move(writes))) {
    if (first_failure.ok()) first_failure = status;
  }
  co_return first_failure;
}

task::Task<Status> IoQueue::reserve(Command& command) {
  const Sqe& sqe = command.sqe;
  Result<Pieces> pieces = Pieces();
  if (sqe.io_opcode() == IoOpcode::kReservationReport) {
    const ReportFields fields = ReportFields::decode(sqe);
    if (fields.length() > context_.limits.transfer_bytes_max) {
      co_return final(StatusCode::kInvalidField);
    }
    pieces = co_await command.to_host(fields.length());
  } else {
    pieces = co_await command.from_host(reservation_data_size(sqe.io_opcode()));
  }
  if (!pieces) co_return data_status(pieces.error());
  co_return co_await context_.control.reservation(sqe, *pieces);
}

task::Task<Status> IoQueue::flush_all(Command& command) {
  std::vector<uint32_t> ids;
  context_.namespaces.for_each([&](CoreNamespace& space) { ids.push_back(space.nsid); });
  Status first_failure;
  for (const uint32_t nsid : ids) {
    CoreNamespace* space = find(nsid);
    if (space == nullptr || !space->gate.enter()) continue;
    Status status = co_await flush_one(command, *space);
    note_answer(*space);
    space->gate.leave();
    if (first_failure.ok()) first_failure = status;
  }
  co_return first_failure;
}

}  // namespace cairn::nvme
