// SPDX-License-Identifier: Apache-2.0
// A large array of zeros that costs memory only where it was touched.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "base/check.h"

namespace cairn::flash {

// Fixed in size. The system hands out untouched pages as zeros, so a table for a terabyte is ready
// at once; T must therefore be content with all-zero bytes as its first state.
template <class T>
class Zeroed {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Zeroed() = default;
  explicit Zeroed(size_t size) : items_(static_cast<T*>(std::calloc(size, sizeof(T)))) {
    CHECK(items_ != nullptr || size == 0, "the model's tables fit into memory");
    size_ = size;
  }

  size_t size() const { return size_; }
  T& operator[](size_t index) { return items_.get()[index]; }
  const T& operator[](size_t index) const { return items_.get()[index]; }
  size_t bytes() const { return size_ * sizeof(T); }

 private:
  struct Free {
    void operator()(T* items) const { std::free(items); }
  };
  std::unique_ptr<T, Free> items_;
  size_t size_ = 0;
};

}  // namespace cairn::flash
