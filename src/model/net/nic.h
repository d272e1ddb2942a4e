// SPDX-License-Identifier: Apache-2.0
// Which flow of a host's port sends next: those that may, in turn.
#pragma once

#include <cstdint>
#include <vector>

#include "model/flash/event_queue.h"
#include "model/net/flow.h"

namespace cairn::net {

class Nic {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;

  uint32_t port = 0;
  Picos wake_at = kNever;  // the earliest wake-up that is under way

  // A place in the turn, after all others.
  uint32_t add(uint32_t flow);
  void remove(uint32_t slot);

  void set_ready(uint32_t slot) { ready_[slot / 64] |= 1ULL << (slot % 64); }
  void clear_ready(uint32_t slot) { ready_[slot / 64] &= ~(1ULL << (slot % 64)); }
  bool ready(uint32_t slot) const { return ((ready_[slot / 64] >> (slot % 64)) & 1) != 0; }
  uint32_t flow_at(uint32_t slot) const { return flows_[slot]; }

  // The first ready slot after the last that was taken; kNobody when none is.
  uint32_t next_ready() const { return next_ready_after(last_); }
  uint32_t next_ready_after(uint32_t slot) const;
  void took(uint32_t slot) { last_ = slot; }

  // Flows that may not send before a time.
  void wait(uint32_t flow, Picos until) { waiting_.push({until, sequence_++}, flow); }
  Picos next_waiting() const { return waiting_.next().time; }
  uint32_t pop_waiting() { return waiting_.pop(); }

  // Many slots are empty: renumber() is worth it.
  bool sparse() const { return flows_.size() >= 64 && size_t{live_} * 4 < flows_.size(); }
  // Closes the gaps; tells every flow its new slot.
  template <class Tell>
  void renumber(Tell tell) {
    uint32_t to = 0;
    uint32_t last = 0;
    std::vector<uint64_t> ready(ready_.size());
    for (uint32_t from = 0; from < flows_.size(); ++from) {
      if (from == last_) last = to == 0 ? 0 : to - 1;
      if (flows_[from] == kNobody) continue;
      if (from == last_) last = to;
      if (this->ready(from)) ready[to / 64] |= 1ULL << (to % 64);
      flows_[to] = flows_[from];
      tell(flows_[to], to);
      ++to;
    }
    flows_.resize(to);
    ready.resize(to / 64 + 1);
    ready_ = std::move(ready);
    last_ = last;
  }

 private:
  std::vector<uint32_t> flows_;  // by slot
  std::vector<uint64_t> ready_;  // a bit per slot
  uint32_t live_ = 0;
  uint32_t last_ = 0;
  uint64_t sequence_ = 0;
  flash::EventHeap waiting_;
};

}  // namespace cairn::net
