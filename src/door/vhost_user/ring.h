// SPDX-License-Identifier: Apache-2.0
// Ring: a virtqueue as the device sees it, whichever layout it has. Chains are taken, put back in
// any order, and published together; while they are out, a record in memory that outlives us may
// say so (inflight).
//
// The guest is another thread: what it may change is read once, and stores are in the order it
// relies on. A ring that is broken stays so: what a guest wrote makes no sense any more. On one
// core. The memory it lies in is neither moved nor taken while the ring is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/common/guest_memory.h"
#include "door/vhost_user/chain.h"
#include "door/vhost_user/dirty_log.h"

namespace cairn::door::vhost_user {

// The next to take, and the next to publish. In a packed virtqueue both have the wrap counter as
// their highest bit; a split one keeps the second in guest memory.
struct RingBase {
  uint16_t available = 0;
  uint16_t used = 0;
};

struct RingOptions {
  uint16_t size = 0;  // of descriptors
  // Where its three parts are in guest memory: descriptors, what the driver writes, what the device
  // writes.
  uint64_t descriptors = 0;
  uint64_t driver = 0;
  uint64_t device = 0;
  bool is_packed = false;
  bool has_event_index = false;
  bool has_indirect = false;
  RingBase base;
  // What is in flight is noted here; empty: nowhere.
  MutableBytes inflight;
  // Where in the log the part that the device writes begins; meaningful with `log`.
  uint64_t used_log_address = 0;
  DirtyLog* log = nullptr;
};

class Ring {
 public:
  enum class Got : uint8_t { kNothing, kChain, kBroken };

  // Chains that a killed process had taken and not published are handed out again first, in their
  // order. kInvalid: parts outside guest memory or at odd addresses, a size that cannot be, or
  // notes of what is in flight that make no sense.
  static Result<std::unique_ptr<Ring>> make(const RingOptions& options, GuestMemory& memory);
  virtual ~Ring() = default;

  virtual Got take(Chain& chain) = 0;
  // Whether the next to take is one that a killed process had taken. base() counts those as taken,
  // so none may be left when it is told to anybody.
  virtual bool has_recovered() const = 0;
  // Hands the chain back at the next publish(). `written`: how many bytes, from the front of what
  // the device may write.
  virtual void put(const Chain& chain, uint32_t written) = 0;
  // Everything that was put is the driver's again. True: it wants to be told.
  virtual bool publish() = 0;
  // While paused the driver need not kick. True from resume_kicks(): there is something to take.
  virtual void pause_kicks() = 0;
  virtual bool resume_kicks() = 0;

  // When nothing is out: where another process goes on.
  virtual RingBase base() const = 0;
  // Nothing is out, and base() was told: the notes hold nothing that the next one needs.
  virtual void forget_inflight() = 0;

  // Where what the device writes in the ring is noted from now on; null: nowhere.
  void set_log(DirtyLog* log, uint64_t used_address) {
    log_ = log;
    used_log_address_ = used_address;
  }

  // What made it break.
  const char* problem() const { return problem_; }

 protected:
  explicit Ring(const RingOptions& options)
      : log_(options.log), used_log_address_(options.used_log_address) {}
  // Of the part that the device writes.
  void mark_used(size_t offset, size_t length) {
    if (log_ != nullptr) log_->mark(used_log_address_ + offset, length);
  }
  Got break_off(const char* problem) {
    problem_ = problem;
    return Got::kBroken;
  }
  const char* problem_ = nullptr;
  DirtyLog* log_;

 private:
  uint64_t used_log_address_;
};

}  // namespace cairn::door::vhost_user
