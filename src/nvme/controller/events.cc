// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/events.h"

#include "nvme/format/limits.h"

namespace cairn::nvme {

namespace {

// By EventKind.
constexpr std::array<AsynchronousEvent, kEventKinds> kEvents = {
    kNamespacesChanged, kAnaChanged, kDiscoveryChanged, kReservationNoticed,
    AsynchronousEvent{EventType::kHealth, HealthEvent::kTemperature, LogPage::kHealth}};

}  // namespace

void Events::EventRequest::start() {
  if (events_.ended_) return complete(fail(Errc::kClosed, "the controller has ended"));
  ++events_.waiting_;
  events_.requests_.push_back(*this);
  events_.deliver();
}

void Events::EventRequest::cancel() {
  ListHook<Events>::unlink();
  --events_.waiting_;
  complete(cancelled());
}

bool Events::abort(uint16_t cid) {
  bool found = false;
  requests_.for_each([&](EventRequest& request) {
    if (found || request.cid_ != cid) return;
    found = true;
    request.ListHook<Events>::unlink();
    --waiting_;
    request.complete(fail(Errc::kCancelled, "the request was aborted"));
  });
  return found;
}

bool Events::has_room() const { return waiting_ < kEventRequestsMax; }

void Events::raise(EventKind kind) {
  State& state = states_[static_cast<size_t>(kind)];
  if (state != State::kQuiet) return;
  state = State::kRaised;
  deliver();
}

void Events::page_was_read(LogPage page) {
  for (size_t i = 0; i < kEventKinds; ++i) {
    if (kEvents[i].page == page) states_[i] = State::kQuiet;
  }
}

void Events::deliver() {
  for (size_t i = 0; i < kEventKinds && !requests_.empty(); ++i) {
    if (states_[i] != State::kRaised) continue;
    states_[i] = State::kTold;
    --waiting_;
    requests_.pop_front()->complete(kEvents[i].encode());
  }
}

void Events::reset() {
  states_.fill(State::kQuiet);
  waiting_ = 0;
  while (EventRequest* request = requests_.pop_front()) {
    request->complete(fail(Errc::kClosed, "the controller was reset"));
  }
}

void Events::end() {
  ended_ = true;
  reset();
}

}  // namespace cairn::nvme
