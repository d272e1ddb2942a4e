// SPDX-License-Identifier: Apache-2.0
// Commands that were lost or refused: sent again later or elsewhere, or given up.
#include <algorithm>
#include <utility>
#include <vector>

#include "fabric/host/remote_drive.h"

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

}  // namespace

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
  if (options_.quiesce == 0_s || paths_.is_stopped()) return 0_s;
  return options_.quiesce + (why == Errc::kTimedOut ? options_.keep_alive : 0_s);
}

// Whether the target may still execute it, though nobody waits for the answer any more.
bool RemoteDrive::may_come_late(const Part& part) const {
  return part.state == Part::State::kDelayed && part.changes && !part.transport &&
         !paths_.is_stopped();
}

void RemoteDrive::give_up(Part& part, const Error& why) {
  if (!may_come_late(part)) return finish(part, fail(why));
  if (!std::exchange(part.gives_up, true)) part.transport = fail(why);
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
