// SPDX-License-Identifier: Apache-2.0
// A command's way: sent on a path, answered, and with the last of its request's the request done.
// What is lost or refused on the way: remote_retry.cc.
#include <utility>

#include "fabric/host/remote_drive.h"
#include "fabric/host/status_error.h"

namespace cairn::fabric {

using drive::DriveOp;

namespace {

// Somebody else has ended this command: who fences a host off, at a target that says no more than
// that. Sent again, it would be executed behind the fence.
bool may_be_fenced(const HostCommand& command) {
  return command.changes && command.cqe.get_status().code() == nvme::StatusCode::kAbortRequested;
}

}  // namespace

void RemoteDrive::dispatch(Part& part) {
  if (continuity_.is_replaced()) return finish(part, fail(kReplaced));
  if (is_barred_) return finish(part, fail(kBarred));
  if (is_failing_) return finish(part, fail(Errc::kUnreachable, "no path to the namespace"));
  part.path = paths_.pick();
  if (part.path == nullptr) {
    ++counters_.waited;
    part.state = Part::State::kReady;
    if (part.pair != nullptr) part.pair->state = Part::State::kReady;
    ready_.push_back(part);
    return look_for_path();
  }
  if (!part.op->request.replicas.empty()) {
    if (Result<void> done = address_replicas(part); !done) return finish(part, done);
  }
  ++counters_.commands;
  if (part.sent) ++counters_.resent;
  part.state = Part::State::kSent;
  if (part.pair != nullptr) {
    part.pair->state = Part::State::kSent;
    part.pair->path = part.path;
  }
  part.path->session().submit(part);
}

void RemoteDrive::on_done(HostCommand& command) {
  Part& part = static_cast<Part&>(command);
  if (part.pair == nullptr) return part.drive.part_done(part);
  // A pair is judged when both have come back.
  Part& other = *part.pair;
  part.state = Part::State::kHeld;
  if (other.state != Part::State::kHeld) return;
  part.drive.pair_done(part.is_second ? other : part, part.is_second ? part : other);
}

void RemoteDrive::part_done(Part& part) {
  if (!part.transport) return part_lost(part);
  const nvme::Status status = part.cqe.get_status();
  const bool gave_up = progress(*part.op).is_cancelled;
  if (status.ok()) {
    if (part.corrupt) {
      if (!gave_up && may_fail_again(part)) return dispatch(part);
      return finish(part, fail(Errc::kCorrupt, "data digest"));
    }
    if (part.moved == part.length) return finish(part, note_success(part));
    return finish(part, fail(Errc::kCorrupt, "the target reports success for part of the data"));
  }
  if (gave_up) return finish(part, fail(error_of(status)));
  if (is_path_status(status)) {
    if (try_elsewhere(part)) return;
    return finish(part, fail(kAstray));
  }
  if (is_transient_status(status) && !may_be_fenced(part) && may_fail_again(part)) {
    return dispatch_later(part, retry_pause(part));
  }
  finish(part, fail(error_of(status)));
}

// What a success means for what else was written: a flush covers it, a change is at stake until
// then.
Result<void> RemoteDrive::note_success(const Part& part) {
  const drive::Request& request = part.op->request;
  if (request.kind == drive::Request::Kind::kFlush) {
    return continuity_.flushed(progress(*part.op).mark, request.knows_losses);
  }
  const bool is_durable = request.durable && request.kind != drive::Request::Kind::kDiscard;
  if (request.writes() && !is_durable && info_.geometry.volatile_cache) {
    continuity_.changed(part.path->info()->incarnation.opening);
    if (!request.replicas.empty()) note_replicas(part);
  }
  return {};
}

// Compare and Write as one: never executed twice, so only sent again when it was not executed.
void RemoteDrive::pair_done(Part& first, Part& second) {
  const bool is_cancelled = progress(*first.op).is_cancelled;
  if (!first.transport || !second.transport) {
    const Error why = first.transport ? second.transport.error() : first.transport.error();
    const bool was_sent = first.sent || second.sent;
    if (!was_sent && !is_cancelled) return dispatch(first);
    first.transport =
        is_cancelled ? fail(why) : fail(Errc::kReset, "the connection ended before the answer");
    first.gives_up = true;
    return dispatch_later(first, was_sent ? quiesce_after(why) : 0_s);
  }
  const nvme::Status compared = first.cqe.get_status();
  const nvme::Status written = second.cqe.get_status();
  if (!is_cancelled && is_path_status(compared) && !written.ok()) {
    if (!try_elsewhere(first)) finish(first, fail(kAstray));
    return;
  }
  if (!compared.ok()) return finish(first, fail(error_of(compared)));
  if (!written.ok()) return finish(first, fail(error_of(written)));
  if (second.moved != second.length) {
    return finish(first, fail(Errc::kCorrupt, "the target reports success for part of the data"));
  }
  finish(first, note_success(second));
}

void RemoteDrive::finish(Part& part, const Result<void>& result) {
  DriveOp& op = *part.op;
  Progress& progress = RemoteDrive::progress(op);
  if (part.pair != nullptr) {
    // They end together.
    Part& other = *part.pair;
    part.pair = other.pair = nullptr;
    free_part(other);
    --progress.parts;
  }
  free_part(part);
  --progress.parts;
  if (!result && !progress.has_failed) {
    progress.has_failed = true;
    progress.error = result.error();
    op.ListHook<DriveOp>::unlink();
  }
  settle(op);
  issue();
}

void RemoteDrive::free_part(Part& part) {
  part.ListHook<QueueTag>::unlink();
  part.state = Part::State::kFree;
  part.op = nullptr;
  free_.push_front(part);
  ++free_count_;
}

// Completes a request of which nothing is left to wait for.
void RemoteDrive::settle(DriveOp& op) {
  Progress& progress = RemoteDrive::progress(op);
  if (progress.parts > 0 || op.ListHook<DriveOp>::is_linked()) return;
  if (progress.has_failed) return op.complete(fail(progress.error));
  const bool is_whole = progress.issued == op.request.blocks;
  op.complete(is_whole || op.request.kind == drive::Request::Kind::kFlush ? Result<void>()
                                                                          : op.cancelled());
}

}  // namespace cairn::fabric
