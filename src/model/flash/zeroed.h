// SPDX-License-Identifier: Apache-2.0
// A large array of zeros that costs memory only where it was touched.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "base/check.h"

namespace cairn::flash {

// Fixed in size. The system hands out untouched pages as zeros, so a table for a terabyte is ready
// at once; T must therefore be content with all-zero bytes as its first state. Nothing is reserved:
// tables may be larger than the machine's memory as long as what is touched of them is not.
template <class T>
class Zeroed {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Zeroed() = default;
  explicit Zeroed(size_t size) : items_(nullptr, {size * sizeof(T)}), size_(size) {
    if (size == 0) return;
    void* const mapped = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(mapped != MAP_FAILED, "the model's tables fit into the address space");
    items_.reset(static_cast<T*>(mapped));
  }

  size_t size() const { return size_; }
  T& operator[](size_t index) { return items_.get()[index]; }
  const T& operator[](size_t index) const { return items_.get()[index]; }
  size_t bytes() const { return size_ * sizeof(T); }

 private:
  struct Free {
    size_t bytes = 0;
    void operator()(T* items) const { ::munmap(items, bytes); }
  };
  std::unique_ptr<T, Free> items_;
  size_t size_ = 0;
};

}  // namespace cairn::flash
