// SPDX-License-Identifier: Apache-2.0
// Fifo: a growing ring for small values; allocates only while it reaches its largest size.
#pragma once

#include <cstddef>
#include <vector>

#include "base/check.h"

namespace cairn::sim {

template <class T>
class Fifo {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  void clear() { size_ = 0; }

  void push(const T& value) {
    if (size_ == slots_.size()) grow();
    slots_[(head_ + size_) & (slots_.size() - 1)] = value;
    ++size_;
  }
  // The oldest; it must not be empty.
  T& front() {
    CHECK(size_ > 0);
    return slots_[head_];
  }
  // The i-th oldest.
  T& at(size_t i) {
    CHECK(i < size_);
    return slots_[(head_ + i) & (slots_.size() - 1)];
  }
  T pop() {
    const T value = front();
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
    return value;
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 8 : slots_.size() * 2);
    for (size_t i = 0; i < size_; ++i) larger[i] = slots_[(head_ + i) & (slots_.size() - 1)];
    slots_.swap(larger);
    head_ = 0;
  }

  std::vector<T> slots_;  // a power of two
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace cairn::sim
