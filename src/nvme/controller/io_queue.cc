// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/io_queue.h"

#include <utility>

#include "nvme/controller/io_commands.h"

namespace cairn::nvme {

namespace {

bool writes(const Sqe& sqe) {
  switch (sqe.io_opcode()) {
    case IoOpcode::kWrite:
    case IoOpcode::kWriteZeroes:
    case IoOpcode::kDatasetManagement:
    case IoOpcode::kCopy:
    case IoOpcode::kFlush:
    case IoOpcode::kReplicatedWrite:
      return true;
    default:
      return false;
  }
}

}  // namespace

void IoQueue::submit(Command& command) {
  if (!context_.authenticated) [[unlikely]] {
    return command.complete(make_cqe(command.sqe, final(StatusCode::kAuthenticationRequired)));
  }
  const Fuse fuse = command.sqe.fuse();
  if (first_ != nullptr && fuse != Fuse::kSecond) abandon_first(StatusCode::kAbortedMissingFused);
  switch (fuse) {
    case Fuse::kNone:
      return gate_.spawn(execute(command));
    case Fuse::kFirst:
      first_ = &command;
      return;
    case Fuse::kSecond:
      if (first_ == nullptr) break;
      return gate_.spawn(execute_fused(*std::exchange(first_, nullptr), command));
    case Fuse::kReserved:
      return command.complete(make_cqe(command.sqe, final(StatusCode::kInvalidField)));
  }
  command.complete(make_cqe(command.sqe, final(StatusCode::kAbortedMissingFused)));
}

bool IoQueue::try_now(Command& command) {
  const Sqe& sqe = command.sqe;
  const bool writing = sqe.io_opcode() == IoOpcode::kWrite;
  if (!writing && sqe.io_opcode() != IoOpcode::kRead) return false;
  // A command between two that are fused is submit()'s to judge.
  if (!context_.authenticated || sqe.fuse() != Fuse::kNone || first_ != nullptr) return false;
  CoreNamespace* space = find(sqe.nsid);
  if (space == nullptr || space->gate.is_closed()) return false;
  const BlockFields fields = BlockFields::decode(sqe);
  if (!may_transfer(*space, fields, writing)) return false;
  const drive::Request request{
      .kind = writing ? drive::Request::Kind::kWrite : drive::Request::Kind::kRead,
      .durable = writing && fields.force_unit_access,
      .unstable_memory = command.has_unstable_memory(),
      .lba = fields.start,
      .blocks = fields.blocks};
  Result<void> done;
  const Bytes lent = writing ? Bytes() : space->drive->lend(fields.start, fields.blocks);
  if (!lent.empty()) {
    if (!command.borrow(lent, space->gate)) return false;
  } else {
    const size_t bytes = size_t{fields.blocks} * space->drive->geometry().block_size;
    const std::optional<Pieces> pieces =
        writing ? command.here_from_host(bytes) : command.here_to_host(bytes);
    if (!pieces) return false;
    const std::optional<Result<void>> tried = space->drive->try_now(request, *pieces);
    if (!tried) return false;
    done = *tried;
  }
  count_io(*space, request, done);
  note_answer(*space);
  command.complete(make_cqe(sqe, done ? Status() : status_of(done.error(), writing)));
  return true;
}

bool IoQueue::may_transfer(const CoreNamespace& space, const BlockFields& fields,
                           bool writing) const {
  return admit(space, writing).ok() && !(writing && space.read_only) &&
         check_transfer(space, fields).ok();
}

void IoQueue::abandon_first(StatusCode code) {
  Command& command = *std::exchange(first_, nullptr);
  command.complete(make_cqe(command.sqe, Status(code)));
}

bool IoQueue::abandon(Command& command, StatusCode code) {
  if (first_ != &command) return false;
  abandon_first(code);
  return true;
}

task::Task<void> IoQueue::close() {
  if (first_ != nullptr) abandon_first(StatusCode::kAbortedQueueDeletion);
  co_await gate_.close();
}

task::Task<void> IoQueue::execute(Command& command) {
  const Sqe& sqe = command.sqe;
  Status status;
  uint32_t dw0 = 0;
  if (sqe.io_opcode() == IoOpcode::kFlush && sqe.nsid == kBroadcastNsid) {
    status = co_await flush_all(command);
  } else if (CoreNamespace* space = find(sqe.nsid);
             space != nullptr && is_reservation(sqe.io_opcode())) {
    status = co_await reserve(command);
  } else if (const Entered entered(space); !entered) {
    status = final(StatusCode::kInvalidNamespaceOrFormat);
  } else if (status = admit(*space, writes(sqe)); !status.ok()) {
    // Refused.
  } else if (space->read_only && writes(sqe) && sqe.io_opcode() != IoOpcode::kFlush) {
    status = final(StatusCode::kNamespaceWriteProtected);
  } else {
    status = sqe.io_opcode() == IoOpcode::kCopy ? co_await copy(command, *space, dw0)
                                                : co_await dispatch(command, *space);
    note_answer(*space);
  }
  command.complete(make_cqe(sqe, status, dw0));
}

Status IoQueue::admit(const CoreNamespace& space, bool writing) const {
  switch (space.ana_state) {
    case AnaState::kOptimized:
    case AnaState::kNonOptimized:
      break;
    case AnaState::kInaccessible:
      return StatusCode::kAnaInaccessible;
    case AnaState::kPersistentLoss:
      return StatusCode::kAnaPersistentLoss;
    case AnaState::kChange:
      return StatusCode::kAnaTransition;
  }
  if (!space.reservation.permits(context_.host, writing)) {
    return final(StatusCode::kReservationConflict);
  }
  return {};
}

// A fused pair is one compare-and-write: both commands complete together, first before second.
task::Task<void> IoQueue::execute_fused(Command& compare, Command& write) {
  FusedOutcome outcome = co_await compare_and_write(compare, write);
  compare.complete(make_cqe(compare.sqe, outcome.first));
  write.complete(make_cqe(write.sqe, outcome.second));
}

task::Task<IoQueue::FusedOutcome> IoQueue::compare_and_write(Command& compare, Command& write) {
  const Sqe& first = compare.sqe;
  const Sqe& second = write.sqe;
  const Status aborted = final(StatusCode::kAbortedFailedFused);
  if (first.io_opcode() != IoOpcode::kCompare || second.io_opcode() != IoOpcode::kWrite) {
    co_return FusedOutcome{final(StatusCode::kInvalidField), aborted};
  }
  CoreNamespace* space = find(first.nsid);
  const Entered entered(space);
  if (!entered) co_return FusedOutcome{final(StatusCode::kInvalidNamespaceOrFormat), aborted};
  if (Status status = admit(*space, true); !status.ok()) co_return FusedOutcome{status, aborted};
  if (space->read_only) {
    co_return FusedOutcome{aborted, final(StatusCode::kNamespaceWriteProtected)};
  }
  const BlockFields range = BlockFields::decode(first);
  const BlockFields target = BlockFields::decode(second);
  if (first.nsid != second.nsid || range.start != target.start || range.blocks != target.blocks) {
    co_return FusedOutcome{final(StatusCode::kInvalidField), aborted};
  }
  if (Status status = check_transfer(*space, range); !status.ok()) {
    co_return FusedOutcome{status, aborted};
  }
  // NACWU: beyond it a crash could leave half of the write.
  if (range.blocks > space->drive->geometry().atomic_blocks) {
    co_return FusedOutcome{final(StatusCode::kAtomicWriteUnitExceeded), aborted};
  }
  const size_t bytes = size_t{range.blocks} * space->drive->geometry().block_size;
  Result<void> prepared = co_await compare.prepare_pair(write);
  if (!prepared) co_return FusedOutcome{data_status(prepared.error()), aborted};
  Result<Pieces> expected = co_await compare.from_host(bytes);
  if (!expected) co_return FusedOutcome{data_status(expected.error()), aborted};
  Result<Pieces> replacement = co_await write.from_host(bytes);
  if (!replacement) co_return FusedOutcome{aborted, data_status(replacement.error())};
  const drive::Request request{
      .kind = drive::Request::Kind::kCompareAndWrite,
      .durable = target.force_unit_access,
      .no_delay = true,
      .unstable_memory = compare.has_unstable_memory() || write.has_unstable_memory(),
      .lba = range.start,
      .blocks = range.blocks};
  Result<void> done =
      co_await space->drive->submit(request, *expected, *replacement, write.cancel_token());
  count_io(*space, request, done);
  note_answer(*space);
  if (done) co_return FusedOutcome{};
  if (done.error() == Errc::kMismatch) {
    co_return FusedOutcome{final(StatusCode::kCompareFailure), aborted};
  }
  co_return FusedOutcome{aborted, status_of(done.error(), true)};
}

}  // namespace cairn::nvme
