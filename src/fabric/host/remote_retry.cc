// SPDX-License-Identifier: Apache-2.0
// What becomes of commands: done, sent again, or failed.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/status_error.h"

namespace cairn::fabric {

using drive::DriveOp;

namespace {

// Before a command that failed is tried again, when its status names no time.
constexpr Duration kRetryPause = 100_ms;
// A command that ends every connection it is sent on must not do so for ever.
constexpr uint32_t kLossesMax = 16;
// Nor may one that every path sends back while the target says that its paths are good. The first
// ones go elsewhere at once, later ones after a pause, in all some ten seconds.
constexpr uint32_t kDetoursMax = 16;
constexpr uint32_t kDetoursAtOnce = 2;
constexpr Duration kDetourPauseMax = 1_s;

// Somebody else has ended this command: who fences a host off, at a target that says no more than
// that. Sent again, it would be executed behind the fence.
bool may_be_fenced(const HostCommand& command) {
  return command.changes && command.cqe.get_status().code() == nvme::StatusCode::kAbortRequested;
}

}  // namespace

void RemoteDrive::dispatch(Part& part) {
  if (continuity_.is_replaced()) return finish(part, fail(kReplaced));
  if (is_failing_) return finish(part, fail(Errc::kUnreachable, "no path to the namespace"));
  part.path = pick();
  if (part.path == nullptr) {
    ++counters_.waited;
    part.state = Part::State::kReady;
    if (part.pair != nullptr) part.pair->state = Part::State::kReady;
    ready_.push_back(part);
    return look_for_path();
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

void RemoteDrive::dispatch_later(Part& part, Duration pause) {
  if (pause <= 0_s) return part.gives_up ? finish(part, part.transport) : dispatch(part);
  part.state = Part::State::kDelayed;
  part.not_before = env_.now() + pause;
  delayed_.push_back(part);
  if (delay_timer_.is_armed() && delay_timer_.when() <= part.not_before) return;
  env_.disarm(delay_timer_);
  env_.arm(delay_timer_, part.not_before);
}

void RemoteDrive::on_delay(task::Timer& timer) {
  RemoteDrive& drive = *static_cast<DriveTimer&>(timer).drive;
  Time next = Time::never();
  List<Part, QueueTag> due;
  drive.delayed_.for_each([&](Part& part) {
    if (part.not_before > drive.env_.now()) {
      next = std::min(next, part.not_before);
      return;
    }
    part.ListHook<QueueTag>::unlink();
    due.push_back(part);
  });
  if (next != Time::never()) drive.env_.arm(timer, next);
  while (Part* part = due.pop_front()) {
    part->gives_up ? drive.finish(*part, part->transport) : drive.dispatch(*part);
  }
}

// --- answers ------------------------------------------------------------------------------------

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
  }
  return {};
}

bool RemoteDrive::try_elsewhere(Part& part) {
  part.path->failed(part.cqe.get_status());
  if (part.detours++ >= kDetoursMax) return false;
  Duration pause;
  if (part.detours > kDetoursAtOnce) {
    const uint32_t doublings = std::min(part.detours - kDetoursAtOnce - 1, 8u);
    pause = std::min(kRetryPause * (1u << doublings), kDetourPauseMax);
  }
  dispatch_later(part, pause);
  return true;
}

bool RemoteDrive::may_fail_again(Part& part) { return part.failures++ < options_.retries_max; }

// CRD, when the status has one and the controller says what it means.
Duration RemoteDrive::retry_pause(const Part& part) const {
  const uint8_t which = part.cqe.get_status().retry_delay();
  if (which == 0 || part.path->rank() == Path::Rank::kUnusable) return kRetryPause;
  const uint16_t units = part.path->session().identity().retry_delay_100ms[which - 1];
  return std::max(units * 100_ms, kRetryPause);
}

// The connection ended without an answer, or the command was cancelled.
void RemoteDrive::part_lost(Part& part) {
  const Error why = part.transport.error();
  const bool is_cancelled = progress(*part.op).is_cancelled;
  if (!part.sent) return is_cancelled ? finish(part, fail(why)) : dispatch(part);
  const bool is_suspect = why != Errc::kReset && why != Errc::kClosed;
  part.gives_up =
      is_cancelled || ++part.losses > kLossesMax || (is_suspect && !may_fail_again(part));
  dispatch_later(part, part.changes ? quiesce_after(why) : 0_s);
}

// The target may hear of the end of the connection only by the silence of the host.
Duration RemoteDrive::quiesce_after(const Error& why) const {
  if (options_.quiesce == 0_s || is_stopping()) return 0_s;
  return options_.quiesce + (why == Errc::kTimedOut ? options_.keep_alive : 0_s);
}

// Whether the target may still execute it, though nobody waits for the answer any more.
bool RemoteDrive::may_come_late(const Part& part) const {
  return part.state == Part::State::kDelayed && part.changes && !part.transport && !is_stopping();
}

void RemoteDrive::give_up(Part& part, const Error& why) {
  if (!may_come_late(part)) return finish(part, fail(why));
  if (!std::exchange(part.gives_up, true)) part.transport = fail(why);
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

// --- ends ---------------------------------------------------------------------------------------

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

// Everything that waits for a path.
void RemoteDrive::fail_all(const Error& why) {
  while (Part* part = ready_.front()) finish(*part, fail(why));
  std::vector<Part*> delayed;
  delayed_.for_each([&](Part& part) { delayed.push_back(&part); });
  for (Part* part : delayed) give_up(*part, why);
  for (List<DriveOp, DriveOp>* list : {&urgent_, &waiting_}) {
    while (DriveOp* op = list->pop_front()) {
      Progress& progress = RemoteDrive::progress(*op);
      progress.has_failed = true;
      progress.error = why;
      settle(*op);
    }
  }
}

}  // namespace cairn::fabric
