// SPDX-License-Identifier: Apache-2.0
#include "fabric/wire/doorbell.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace cairn::fabric {

namespace {

// With so many of ours at the peer for each message that waits, the peer stays busy meanwhile.
constexpr size_t kOthersPerWaiting = 8;
// A core that is busy when the bell rings lets more gather: so many times the count may leave at
// once, but not more than half of all, so that both ends have work at the same time.
constexpr size_t kCountsPerSend = 4;

}  // namespace

std::string_view name(DoorbellOptions::Mode mode) {
  constexpr std::string_view kNames[] = {"off", "fixed", "adaptive"};
  return kNames[static_cast<size_t>(mode)];
}

std::optional<DoorbellOptions::Mode> parse_batching(std::string_view text) {
  using Mode = DoorbellOptions::Mode;
  for (const Mode mode : {Mode::kOff, Mode::kFixed, Mode::kAdaptive}) {
    if (text == name(mode)) return mode;
  }
  return std::nullopt;
}

std::string_view name(RingCause cause) {
  constexpr std::string_view kNames[] = {"count", "bytes", "timer", "no_delay", "idle", "alone"};
  static_assert(std::size(kNames) == kRingCauses);
  return kNames[static_cast<size_t>(cause)];
}

void LaneCounters::note_send(size_t count, size_t size) {
  ++sends;
  messages += count;
  bytes += size;
  if (count > 0) ++sizes[std::min<size_t>(std::bit_width(count - 1), kSizes - 1)];
}

void LaneCounters::add(const LaneCounters& other) {
  sends += other.sends;
  messages += other.messages;
  bytes += other.bytes;
  timers += other.timers;
  for (size_t i = 0; i < rings.size(); ++i) rings[i] += other.rings[i];
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] += other.sizes[i];
}

Doorbell::Doorbell(env::Env& env, const DoorbellOptions& options, Ring ring, void* owner)
    : env_(env),
      options_(options),
      count_max_(options.mode == DoorbellOptions::Mode::kOff ? 1 : options.count),
      ring_(ring),
      owner_(owner),
      timer_(&Doorbell::on_delay) {
  CHECK(options.count > 0 && options.bytes > 0);
  timer_.bell = this;
}

Doorbell::~Doorbell() { silence(); }

bool Doorbell::add(size_t bytes, bool no_delay, size_t others) {
  ++waiting_;
  waiting_bytes_ += bytes;
  in_flight_ = waiting_ + others;
  if (rung_) return true;
  if (options_.mode == DoorbellOptions::Mode::kOff) return ring(RingCause::kAlone);
  if (no_delay) return ring(RingCause::kNoDelay);
  if (waiting_ >= count_max_) return ring(RingCause::kCount);
  if (waiting_bytes_ >= options_.bytes) return ring(RingCause::kBytes);
  if (waiting_ > waiting_max(others)) return ring(RingCause::kIdle);
  if (!timer_.is_armed()) {
    ++counters_.timers;
    env_.arm(timer_, env_.now() + options_.delay);
  }
  return false;
}

bool Doorbell::reconsider(size_t others) {
  if (waiting_ == 0 || rung_) return rung_;
  return waiting_ > waiting_max(others) && ring(RingCause::kIdle);
}

// How many may wait while the peer has `others`.
size_t Doorbell::waiting_max(size_t others) const {
  if (options_.mode == DoorbellOptions::Mode::kFixed) return SIZE_MAX;
  return others / kOthersPerWaiting;
}

size_t Doorbell::send_max() const {
  if (options_.mode != DoorbellOptions::Mode::kAdaptive) return count_max_;
  return std::clamp(in_flight_ / 2, count_max_, kCountsPerSend * count_max_);
}

bool Doorbell::ring(RingCause cause) {
  rung_ = true;
  ++counters_.rings[static_cast<size_t>(cause)];
  if (timer_.is_armed()) env_.disarm(timer_);
  return true;
}

void Doorbell::on_delay(task::Timer& timer) {
  Doorbell& bell = *static_cast<DelayTimer&>(timer).bell;
  bell.ring(RingCause::kTimer);
  bell.ring_(bell.owner_);
}

// Messages may be withdrawn without a word, so the counts can be too high until all have left.
void Doorbell::left(size_t messages, size_t bytes, bool all) {
  if (messages > 0) counters_.note_send(messages, bytes);
  if (all) return silence();
  waiting_ -= std::min(waiting_, messages);
  waiting_bytes_ -= std::min(waiting_bytes_, bytes);
}

void Doorbell::silence() {
  if (timer_.is_armed()) env_.disarm(timer_);
  waiting_ = waiting_bytes_ = 0;
  rung_ = false;
}

}  // namespace cairn::fabric
