// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "fabric/host/authenticate.h"
#include "nvme/format/command_format.h"
#include "nvme/format/property_format.h"
#include "task/deadline.h"

namespace cairn::fabric {

// --- one command --------------------------------------------------------------------------------

CommandOp::CommandOp(HostSession& session, HostQueue* queue, const nvme::Sqe& sqe,
                     MutableBytes data, task::CancelToken token)
    : Operation(token), session_(session), queue_(queue), piece_(data), command_(&on_done) {
  command_.op = this;
  command_.sqe = sqe;
  command_.data = std::span<const MutableBytes>(&piece_, 1);
  command_.length = static_cast<uint32_t>(data.size());
}

void CommandOp::start() {
  if (session_.lost_) return complete(fail(*session_.lost_));
  session_.submit_to(queue_, command_);
}

void CommandOp::cancel() { HostSession::cancel(command_, token().error()); }

void CommandOp::on_done(HostCommand& command) {
  CommandOp& op = *static_cast<Command&>(command).op;
  if (!command.transport) return op.complete(fail(command.transport.error()));
  if (command.corrupt) return op.complete(fail(Errc::kCorrupt, "data digest"));
  op.complete(command.cqe);
}

// --- life ---------------------------------------------------------------------------------------

HostSession::HostSession(env::Env& env, const Options& options, User& user)
    : env_(env), options_(options), user_(user) {}

HostSession::~HostSession() {
  CHECK(waiting_.empty() && urgent_waiting_.empty() && admin_waiting_.empty(),
        "a session is closed before it is destroyed");
}

void HostSession::lose(const Error& why) {
  if (lost_) return;
  lost_ = why;
  env_.trace().record("host.session_lost", static_cast<uint64_t>(why.code()));
  if (admin_ != nullptr) admin_->stop(why);
  for (const auto& queue : io_) queue->stop(why);
  if (is_open_) user_.session_lost(why);
  hand_back_waiting();
  closing_.request();
}

// A command that no queue has seen comes back, and the second of a pair behind its first.
void HostSession::hand_back(HostCommand& command, const Error& why) {
  HostCommand* second = command.second;
  for (HostCommand* each : {&command, second}) {
    if (each == nullptr) continue;
    each->transport = fail(why);
    each->sent = false;
    each->done(*each);
  }
}

void HostSession::hand_back_waiting() {
  for (List<HostCommand, HostCommand>* list : {&urgent_waiting_, &waiting_, &admin_waiting_}) {
    while (HostCommand* command = list->pop_front()) hand_back(*command, *lost_);
  }
}

task::Task<void> HostSession::close() {
  if (is_open_ && !lost_) co_await shut_down();
  is_open_ = false;
  lose(Error(Errc::kClosed, "the host ended the session"));
  for (const auto& queue : io_) co_await queue->close();
  if (admin_ != nullptr) co_await admin_->close();
  co_await gate_.close();
}

// Tells the target that this was on purpose, so that it need not wait for keep-alives. That it
// hears is not worth waiting for long.
task::Task<void> HostSession::shut_down() {
  constexpr Duration kLimit = 1_s;
  task::Deadline deadline(env_, env_.now() + kLimit);
  nvme::Configuration configuration{.enable = true,
                                    .page_size = capabilities_.page_size_min,
                                    .shutdown = nvme::ShutdownNotice::kNormal,
                                    .submission_entry_size = 6,
                                    .completion_entry_size = 4};
  const Result<void> told = co_await set_property(nvme::PropertyOffset::kConfiguration,
                                                  configuration.encode(), deadline.token());
  env_.trace().record("host.shut_down", told.has_value() ? 1 : 0);
}

// --- commands -----------------------------------------------------------------------------------

bool HostSession::can_fuse() const {
  return (identity_->fused & nvme::Fuses::kCompareAndWrite) != 0 && !io_.empty() &&
         io_.front()->outstanding() + io_.front()->room() > 1;
}

uint32_t HostSession::capacity() const {
  uint32_t total = 0;
  for (const auto& queue : io_) total += queue->outstanding() + queue->room();
  return total;
}

std::vector<HostLane> HostSession::lanes() const {
  std::vector<HostLane> lanes;
  if (admin_ != nullptr) lanes.push_back(admin_->lane());
  for (const auto& queue : io_) lanes.push_back(queue->lane());
  return lanes;
}

HostQueue* HostSession::pick(const HostCommand& command) {
  const uint32_t room = command.second != nullptr ? 2 : 1;
  const bool some_are_kept = urgent_queues_ > 0 && urgent_queues_ < io_.size();
  if (some_are_kept && command.no_delay) {
    if (HostQueue* queue = pick_among(true, room)) return queue;
  }
  return pick_among(!some_are_kept && urgent_queues_ > 0, room);
}

// In turn among the queues that are kept for urgent commands, or among the others.
HostQueue* HostSession::pick_among(bool urgent, uint32_t room) {
  for (size_t i = 0; i < io_.size(); ++i) {
    HostQueue* queue = io_[next_queue_].get();
    next_queue_ = next_queue_ + 1 == io_.size() ? 0 : next_queue_ + 1;
    if (queue->room() < room) continue;
    if (urgent_queues_ == 0 || is_urgent(*queue) == urgent) return queue;
  }
  return nullptr;
}

void HostSession::submit(HostCommand& command) { submit_to(nullptr, command); }

// Nobody overtakes those who wait, except where urgent ones have a queue of their own.
void HostSession::submit_to(HostQueue* queue, HostCommand& command) {
  CHECK(!lost_, "nothing is submitted to a lost session");
  if (queue == nullptr) {
    List<HostCommand, HostCommand>& waiting =
        urgent_queues_ > 0 && command.no_delay ? urgent_waiting_ : waiting_;
    queue = waiting.empty() ? pick(command) : nullptr;
    return queue != nullptr ? queue->submit(command) : waiting.push_back(command);
  }
  if (queue != admin_.get()) return queue->submit(command);  // an I/O queue's own Connect
  if (!admin_waiting_.empty() || queue->room() == 0) return admin_waiting_.push_back(command);
  queue->submit(command);
}

void HostSession::cancel(HostCommand& command, const Error& why) {
  if (command.queue != nullptr) return command.queue->cancel(command, why);
  command.unlink();
  hand_back(command, why);
}

void HostSession::queue_has_room(HostQueue& queue) {
  if (&queue == admin_.get()) return serve(admin_waiting_, queue);
  if (!urgent_waiting_.empty()) serve(urgent_waiting_, queue);
  const bool is_kept = urgent_queues_ > 0 && urgent_queues_ < io_.size() && is_urgent(queue);
  if (!is_kept) serve(waiting_, queue);
}

void HostSession::serve(List<HostCommand, HostCommand>& waiting, HostQueue& queue) {
  while (HostCommand* first = waiting.front()) {
    if (lost_ || queue.room() < (first->second != nullptr ? 2u : 1u)) return;
    waiting.pop_front();
    queue.submit(*first);
  }
}

void HostSession::queue_ended(HostQueue& queue, const Error& why) {
  env_.trace().record("host.queue_lost", queue.id(), static_cast<uint64_t>(why.code()));
  lose(why);
}

// --- what a session does by itself --------------------------------------------------------------

task::Task<void> HostSession::keep_alive_loop() {
  const Duration time = options_.host.keep_alive;
  while (!lost_) {
    const Result<void> slept = co_await task::sleep_for(env_, time / 2, closing_.token());
    if (!slept || lost_) co_return;
    task::Deadline deadline(env_, env_.now() + time, closing_.token());
    const nvme::Sqe sqe = nvme::Sqe::make(nvme::AdminOpcode::kKeepAlive);
    const Result<nvme::Cqe> answer = co_await admin(sqe, {}, deadline.token());
    if (answer && answer->get_status().ok()) continue;
    if (closing_.requested()) co_return;
    lose(answer ? Error(Errc::kReset, "the target refuses to be kept alive",
                        answer->status.value() >> 1)
                : answer.error());
  }
}

// Commands in flight go on meanwhile.
task::Task<void> HostSession::reauthenticate_loop() {
  while (!lost_) {
    const Duration pause = options_.host.reauthenticate;
    const Result<void> slept = co_await task::sleep_for(env_, pause, closing_.token());
    if (!slept || lost_) co_return;
    task::Deadline deadline(env_, env_.now() + options_.host.authenticate_timeout,
                            closing_.token());
    const Result<void> done = co_await authenticate(*this, *admin_, deadline.token());
    env_.trace().record("host.reauthenticated", done ? 1 : 0);
    if (!done && !closing_.requested()) lose(done.error());
  }
}

task::Task<void> HostSession::event_loop() {
  while (!lost_) {
    const nvme::Sqe sqe = nvme::Sqe::make(nvme::AdminOpcode::kAsynchronousEventRequest);
    CommandOp request = admin(sqe);
    request.never_times_out();
    const Result<nvme::Cqe> answer = co_await request;
    // A target that refuses sends no events; what changes is then seen when something fails.
    if (!answer || !answer->get_status().ok() || closing_.requested()) co_return;
    const nvme::AsynchronousEvent event = nvme::AsynchronousEvent::decode(answer->dw0);
    env_.trace().record("host.event", static_cast<uint64_t>(event.type), event.info);
    user_.session_event(event);
  }
}

void HostSession::queue_wants_abort(HostQueue& queue, uint16_t command_id) {
  if (lost_ || closing_.requested() || aborts_ > identity_->aborts_max) return;
  gate_.spawn(send_abort(queue.id(), command_id));
}

task::Task<void> HostSession::send_abort(uint16_t queue_id, uint16_t command_id) {
  ++aborts_;
  nvme::Sqe sqe = nvme::Sqe::make(nvme::AdminOpcode::kAbort);
  nvme::AbortFields{.sqid = queue_id, .cid = command_id}.encode(sqe);
  // Whether it helps is seen at the command itself.
  const Result<nvme::Cqe> answer = co_await admin(sqe);
  env_.trace().record("host.abort", command_id, answer.has_value() ? 1 : 0);
  --aborts_;
}

}  // namespace cairn::fabric
