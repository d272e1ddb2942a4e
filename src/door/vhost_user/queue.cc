// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/queue.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace cairn::door::vhost_user {

namespace {

// Chains that are taken in one go, before others of the core get their turn.
constexpr size_t kGoMax = 64;
// An adaptive window below this part of the longest is not worth beginning.
constexpr int64_t kWindowSteps = 8;

}  // namespace

Queue::Queue(const QueueParts& parts, std::unique_ptr<Ring> ring, QueueSignals& signals,
             const bool& durable)
    : parts_(parts),
      ring_(std::move(ring)),
      signals_(signals),
      durable_(durable),
      window_(parts.options.waiting == Waiting::kAdaptive ? parts.options.door.adaptive_window
                                                          : Duration{0}),
      work_(*this) {}

void Queue::start() {
  tell();
  if (signals_.kick != nullptr) gate_.spawn(listen());
  wake();
}

task::Task<void> Queue::stop() {
  is_stopping_ = true;
  stop_polling();
  stopping_.request();
  co_await serve_recovered();
  co_await gate_.close();
  publish();
}

task::Task<void> Queue::listen() {
  while (!is_stopping_) {
    const Result<void> kicked = co_await signals_.kick->wait(stopping_.token());
    if (!kicked) co_return;
    learn();
    wake();
  }
}

// A driver that never kicks is looked at all the time.
bool Queue::must_poll() const {
  return parts_.options.waiting == Waiting::kPolling || signals_.kick == nullptr;
}

void Queue::wake() {
  if (is_stopping_ || is_broken_) return;
  if (!is_polling_) ring_->pause_kicks();
  serve();
  settle();
}

// A kick has come to a queue that slept. Had it looked for as long as it may, would it have found
// the request? Looking costs a core while a guest takes its time, and pays when it does not.
void Queue::learn() {
  if (is_polling_ || parts_.options.waiting != Waiting::kAdaptive) return;
  const Duration longest = parts_.options.door.adaptive_window;
  if (parts_.env.now() - last_found_ <= longest) {
    window_ = std::min(longest, window_ * 2 + longest / kWindowSteps);
  } else {
    window_ = window_ / 2;
    if (window_ < longest / kWindowSteps) window_ = Duration{0};
  }
}

// After a go: looks again, waits for the next kick, or goes on when the rest of the core had its
// turn.
void Queue::settle() {
  if (is_stopping_ || is_broken_) return;
  last_found_ = parts_.env.now();
  if (must_poll() || window_ > Duration{0}) return start_polling();
  // With all slots out, whoever is done first goes on.
  if (!is_full_ && ring_->resume_kicks()) {
    ring_->pause_kicks();
    has_more_ = true;
    work_later();
  }
}

bool Queue::poll() {
  if (serve()) {
    last_found_ = parts_.env.now();
    return true;
  }
  if (is_broken_) {
    stop_polling();
    return false;
  }
  if (must_poll() || is_full_) return false;
  if (parts_.env.now() - last_found_ < window_) return false;
  if (ring_->resume_kicks()) {
    ring_->pause_kicks();
    last_found_ = parts_.env.now();
    return false;
  }
  stop_polling();
  return false;
}

void Queue::start_polling() {
  if (std::exchange(is_polling_, true)) return;
  parts_.sharing.add_poller(*this);
}

void Queue::stop_polling() {
  if (std::exchange(is_polling_, false)) parts_.sharing.remove_poller(*this);
}

void Queue::work_later() {
  if (is_posted_ || !gate_.enter()) return;
  is_posted_ = true;
  parts_.env.post(parts_.env.core(), work_);
}

void Queue::on_work(env::Message& message, env::Env&) {
  Queue& queue = static_cast<WorkMessage&>(message).queue;
  queue.is_posted_ = false;
  queue.publish();
  const bool was_full = std::exchange(queue.is_full_, false);
  const bool had_more = std::exchange(queue.has_more_, false);
  if (was_full || had_more) queue.wake();
  queue.gate_.leave();
}

bool Queue::serve() {
  if (is_stopping_ || is_broken_ || is_full_) return false;
  bool found = false;
  for (size_t i = 0; i < kGoMax && serve_one(); ++i) found = true;
  publish();
  return found;
}

bool Queue::serve_one() {
  if (free_.empty()) {
    if (slots_.size() == kRequestsMax) {
      is_full_ = true;
      return false;
    }
    slots_.push_back(std::make_unique<Slot>());
    free_.push_back(slots_.back().get());
  }
  Slot& slot = *free_.back();
  switch (ring_->take(slot.chain)) {
    case Ring::Got::kNothing:
      return false;
    case Ring::Got::kBroken:
      break_off();
      return false;
    case Ring::Got::kChain:
      break;
  }
  free_.pop_back();
  begin(slot);
  return true;
}

task::Task<void> Queue::serve_recovered() {
  while (ring_->has_recovered() && !is_broken_ && !abandoned_.requested()) {
    is_full_ = false;
    if (serve_one() || !is_full_) continue;
    finished_.reset();
    const Result<void> finished = co_await finished_.wait();
    CHECK(finished.has_value(), "nobody cancels this wait");
  }
}

void Queue::begin(Slot& slot) {
  const Result<void> read = read_request(slot.chain, parts_.memory, slot.request);
  if (!read && read.error() == Errc::kInvalid) {
    // Nobody can be told how it went; the driver gets its memory back.
    ring_->put(slot.chain, 0);
    free_.push_back(&slot);
    return;
  }
  if (!read) return finish(slot, {.status = BlkStatus::kError});
  slot.is_durable = durable_;
  slot.mark = parts_.losses.mark();
  if (const auto done = parts_.disk.try_now(slot.request, slot.is_durable)) {
    return finish(slot, *done);
  }
  gate_.spawn(run(slot));
}

task::Task<void> Queue::run(Slot& slot) {
  const BlkDisk::Outcome outcome =
      co_await parts_.disk.run(slot.request, slot.is_durable, abandoned_.token());
  finish(slot, judged(slot, outcome));
  // What is done in one turn is published together; at the end, each by itself.
  if (gate_.is_closed()) {
    publish();
  } else {
    work_later();
  }
}

// What the guest may count on from here on is noted before it is told.
BlkDisk::Outcome Queue::judged(const Slot& slot, BlkDisk::Outcome outcome) {
  if (!outcome.is_done || !slot.request.is_flush()) return outcome;
  const bool is_ok = outcome.status == BlkStatus::kOk;
  const Result<void> done = is_ok ? Result<void>() : fail(Errc::kIo, "the flush failed");
  if (!parts_.losses.flushed(slot.mark, done)) outcome.status = BlkStatus::kError;
  return outcome;
}

void Queue::finish(Slot& slot, const BlkDisk::Outcome& outcome) {
  free_.push_back(&slot);
  finished_.set();
  if (!outcome.is_done) return;
  const BlkRequest& request = slot.request;
  const bool is_ok = outcome.status == BlkStatus::kOk;
  if (is_ok && request.is_change() && !slot.is_durable) parts_.losses.changed();
  mark_data(request, outcome.written);
  *request.status = static_cast<std::byte>(outcome.status);
  parts_.log.mark(request.status_address, 1);
  ring_->put(slot.chain, static_cast<uint32_t>(outcome.written + 1));
}

void Queue::mark_data(const BlkRequest& request, size_t written) {
  for (const Segment& place : request.places) {
    if (written == 0) return;
    if (!place.is_writable) continue;
    const size_t part = std::min<size_t>(place.length, written);
    parts_.log.mark(place.address, part);
    written -= part;
  }
}

void Queue::publish() {
  if (ring_->publish()) tell();
}

void Queue::tell() {
  if (signals_.call != nullptr) signals_.call->raise();
}

void Queue::break_off() {
  is_broken_ = true;
  if (signals_.error != nullptr) signals_.error->raise();
  if (parts_.options.door.log) {
    parts_.options.door.log(std::string("a virtqueue of ") + parts_.disk.exported().options().name +
                            " is broken and rests until its guest resets it: " + ring_->problem());
  }
}

}  // namespace cairn::door::vhost_user
