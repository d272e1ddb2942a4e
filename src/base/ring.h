// SPDX-License-Identifier: Apache-2.0
// A first-in first-out ring of fixed capacity. Full means full: it never grows.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/check.h"

namespace cairn {

template <class T>
class Ring {
 public:
  explicit Ring(size_t capacity) : slots_(new Slot[capacity]), capacity_(capacity) {
    CHECK(capacity > 0);
  }
  ~Ring() {
    while (!empty()) pop();
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == capacity_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }

  // False, and `value` untouched, when full.
  [[nodiscard]] bool push(T&& value) {
    if (full()) return false;
    size_t tail = head_ + size_;
    if (tail >= capacity_) tail -= capacity_;
    std::construct_at(slots_[tail].get(), std::move(value));
    ++size_;
    return true;
  }
  // The oldest; the ring must not be empty.
  T& front() {
    CHECK(!empty());
    return *slots_[head_].get();
  }
  const T& front() const {
    CHECK(!empty());
    return *slots_[head_].get();
  }
  T pop() {
    CHECK(!empty());
    T* slot = slots_[head_].get();
    T value = std::move(*slot);
    std::destroy_at(slot);
    head_ = head_ + 1 == capacity_ ? 0 : head_ + 1;
    --size_;
    return value;
  }

 private:
  struct Slot {
    alignas(T) std::byte storage[sizeof(T)];
    T* get() { return reinterpret_cast<T*>(storage); }
  };
  std::unique_ptr<Slot[]> slots_;
  size_t capacity_;
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace cairn
