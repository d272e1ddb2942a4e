// SPDX-License-Identifier: Apache-2.0
// Plain structs by index: cheaper than pointers, and taking one never allocates in a steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::flash {

inline constexpr uint32_t kNone = UINT32_MAX;

// T has a member `uint32_t next`, which the pool uses while the slot is free.
template <class T>
class Pool {
 public:
  // A slot with its first values. References into the pool do not survive the call.
  uint32_t take() {
    if (free_ == kNone) {
      slots_.emplace_back();
      return static_cast<uint32_t>(slots_.size() - 1);
    }
    const uint32_t index = free_;
    free_ = slots_[index].next;
    slots_[index] = T{};
    return index;
  }
  void give_back(uint32_t index) {
    slots_[index].next = free_;
    free_ = index;
  }
  T& operator[](uint32_t index) { return slots_[index]; }
  const T& operator[](uint32_t index) const { return slots_[index]; }
  // Calls visit(slot) for each slot that is taken.
  template <class F>
  void for_each(F&& visit) const {
    std::vector<bool> free(slots_.size());
    for (uint32_t index = free_; index != kNone; index = slots_[index].next) free[index] = true;
    for (size_t index = 0; index < slots_.size(); ++index) {
      if (!free[index]) visit(slots_[index]);
    }
  }
  // Takes all slots back.
  void clear() {
    peak_ = peak();
    slots_.clear();
    free_ = kNone;
  }
  // The most that were ever taken at once.
  size_t peak() const { return peak_ > slots_.size() ? peak_ : slots_.size(); }

 private:
  std::vector<T> slots_;
  size_t peak_ = 0;  // before the last clear()
  uint32_t free_ = kNone;
};

// First in, first out, of pool slots linked by `next`.
struct Fifo {
  uint32_t head = kNone;
  uint32_t tail = kNone;

  bool empty() const { return head == kNone; }
  template <class T>
  void push(Pool<T>& pool, uint32_t index) {
    pool[index].next = kNone;
    if (tail == kNone) {
      head = index;
    } else {
      pool[tail].next = index;
    }
    tail = index;
  }
  template <class T>
  uint32_t pop(Pool<T>& pool) {
    const uint32_t index = head;
    head = pool[index].next;
    if (head == kNone) tail = kNone;
    return index;
  }
};

}  // namespace cairn::flash
