// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/controller.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "env/call.h"
#include "nvme/format/identify_controller_format.h"
#include "task/when_all.h"

namespace cairn::nvme {

Controller::Controller(env::Env& env, Subsystem& subsystem, const Options& options)
    : properties({.queue_entries_max = options.queue_entries_max,
                  .discovery = options.kind == ControllerKind::kDiscovery}),
      features({.kind = options.kind,
                .queues_max = options.queues_max,
                .events_offered = events_offered(options.kind),
                .keep_alive_ms = options.keep_alive_ms,
                .vectors = options.vectors,
                .host = options.host}),
      errors(options.kind == ControllerKind::kPci ? 0 : 3),
      env_(env),
      subsystem_(subsystem),
      options_(options),
      timer_(&Controller::on_keep_alive) {
  timer_.self = this;
  restart_keep_alive();
}

uint32_t Controller::events_offered(ControllerKind kind) {
  switch (kind) {
    case ControllerKind::kDiscovery:
      return EventMask::kDiscoveryLog;
    case ControllerKind::kIo:
      return EventMask::kNamespaceAttributes | EventMask::kAna;
    case ControllerKind::kPci:
      return EventMask::kNamespaceAttributes;
  }
  return 0;
}

bool Controller::has_io_queues() const { return queues_.upper_bound(0) != queues_.end(); }

bool Controller::may_disconnect(uint16_t id) const {
  const auto found = queues_.find(id);
  return found != queues_.end() && found->second->may_disconnect;
}

void Controller::add_queue(uint16_t id, CoreId core, QueueLink& link, bool may_disconnect) {
  auto queue = std::make_unique<Queue>(core, link, may_disconnect);
  const bool added = queues_.emplace(id, std::move(queue)).second;
  CHECK(added, "a queue id is connected once");
}

task::Task<bool> Controller::remove_queue(uint16_t id, QueueLink& link) {
  const auto found = queues_.find(id);
  if (found == queues_.end() || &found->second->link != &link) co_return false;
  const std::unique_ptr<Queue> queue = std::move(found->second);
  queues_.erase(found);
  if (queue->auth != nullptr) queue->auth->finished();
  if (id == 0) end("the admin queue is gone");
  ++leaving_;
  co_await queue->uses.close();
  --leaving_;
  co_return ending_&& queues_.empty() && leaving_ == 0;
}

task::Task<void> Controller::remove_io_queue(uint16_t id) {
  const bool last = co_await remove_queue(id, queues_.at(id)->link);
  CHECK(id != 0 && !last, "the admin queue leaves last");
}

bool Controller::is_open(uint16_t id) const {
  const auto found = queues_.find(id);
  if (found == queues_.end()) return false;
  return found->second->auth == nullptr || found->second->auth->is_open;
}

bool Controller::may_authenticate(uint16_t id) const {
  const auto found = queues_.find(id);
  return found != queues_.end() && found->second->auth != nullptr;
}

void Controller::set_auth(uint16_t id, std::unique_ptr<QueueAuth> auth) {
  queues_.at(id)->auth = std::move(auth);
}

Controller::Queue* Controller::hold(uint16_t id) {
  const auto found = queues_.find(id);
  if (found == queues_.end() || !found->second->uses.enter()) return nullptr;
  return found->second.get();
}

task::Task<void> Controller::open_queue(Queue& queue, bool open) {
  co_await env::call_on(env_, queue.core,
                        [&queue, open](env::Env&) { queue.link.set_authenticated(open); });
}

void Controller::disconnect_queue(const QueueAuth& auth, const char* why) {
  for (const auto& [id, queue] : queues_) {
    if (queue->auth.get() == &auth) gate.spawn(disconnect(*queue, why));
  }
}

task::Task<bool> Controller::abort(uint16_t queue_id, uint16_t cid) {
  const auto found = queues_.find(queue_id);
  if (found == queues_.end() || !found->second->uses.enter()) co_return false;
  Queue& queue = *found->second;
  const bool aborted = co_await env::call_on(
      env_, queue.core, [&queue, cid](env::Env&) { return queue.link.abort(cid); });
  queue.uses.leave();
  co_return aborted;
}

task::Task<void> Controller::abort_namespace_of(Queue& queue, uint32_t nsid) {
  if (!queue.uses.enter()) co_return;
  co_await env::call_on(env_, queue.core,
                        [&queue, nsid](env::Env&) { return queue.link.abort_namespace(nsid); });
  queue.uses.leave();
}

task::Task<void> Controller::abort_namespace(uint32_t nsid) {
  std::vector<task::Task<void>> aborts;
  for (const auto& [id, queue] : queues_) {
    if (id != 0) aborts.push_back(abort_namespace_of(*queue, nsid));
  }
  co_await task::when_all(std::move(aborts));
}

task::Task<void> Controller::disconnect(Queue& queue, const char* why) {
  if (!queue.uses.enter()) co_return;
  co_await env::call_on(env_, queue.core, [&queue, why](env::Env&) { queue.link.disconnect(why); });
  queue.uses.leave();
}

task::Task<bool> Controller::take_traffic(Queue& queue) {
  if (!queue.uses.enter()) co_return false;
  const bool traffic = co_await env::call_on(
      env_, queue.core, [&queue](env::Env&) { return queue.link.take_traffic(); });
  queue.uses.leave();
  co_return traffic;
}

Duration Controller::keep_alive_limit() const {
  const uint32_t ms = features.keep_alive_ms();
  if (ms == 0) return is_discovery() ? kDiscoveryIdle : Duration::max();
  return Duration{int64_t{ms} * 1'000'000};
}

void Controller::restart_keep_alive() {
  traffic_ = false;
  env_.disarm(timer_);
  const Duration limit = keep_alive_limit();
  if (limit != Duration::max() && !ending_) env_.arm(timer_, env_.now() + limit);
}

void Controller::on_keep_alive(task::Timer& timer) {
  Controller& self = *static_cast<KeepAliveTimer&>(timer).self;
  self.gate.spawn(self.check_keep_alive());
}

// With CTRATT.TBKAS any command on any queue counts; queues are asked only when time is up, so that
// the data path keeps one flag and no clock.
task::Task<void> Controller::check_keep_alive() {
  std::vector<task::Task<bool>> asked;
  for (const auto& [id, queue] : queues_) asked.push_back(take_traffic(*queue));
  const std::vector<bool> answers = co_await task::when_all(std::move(asked));
  if (ending_ || timer_.is_armed()) co_return;
  bool traffic = traffic_;
  for (const bool answer : answers) traffic = traffic || answer;
  if (traffic) co_return restart_keep_alive();
  end("keep alive timed out");
}

void Controller::forget() {
  events.reset();
  features.reset();
  changed_namespaces.clear();
  notices.reset();
}

void Controller::reset() {
  forget();
  for (const auto& [id, queue] : queues_) {
    if (id != 0) gate.spawn(disconnect(*queue, "the controller was reset"));
  }
}

task::Task<void> Controller::reset_attached() {
  forget();
  attachment->book.clear();
  while (has_io_queues()) co_await remove_io_queue(queues_.upper_bound(0)->first);
}

void Controller::end(const char* why) {
  if (ending_) return;
  ending_ = true;
  env_.disarm(timer_);
  events.end();
  for (const auto& [id, queue] : queues_) gate.spawn(disconnect(*queue, why));
}

void Controller::raise(EventKind kind) {
  switch (kind) {
    case EventKind::kNamespaces:
      if (!features.wants_event(EventMask::kNamespaceAttributes)) return;
      break;
    case EventKind::kAna:
      if (!features.wants_event(EventMask::kAna)) return;
      break;
    case EventKind::kDiscovery:
      if (!features.wants_event(EventMask::kDiscoveryLog)) return;
      break;
    case EventKind::kTemperature:
      if (!features.wants_event(CriticalWarning::kTemperature)) return;
      break;
    case EventKind::kReservation:
      break;
  }
  events.raise(kind);
}

}  // namespace cairn::nvme
