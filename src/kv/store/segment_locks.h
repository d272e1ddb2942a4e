// SPDX-License-Identifier: Apache-2.0
// SegmentLocks: one writer of a segment at a time. Readers take none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "task/sync.h"

namespace cairn::kv::store {

// Segments share a fixed number of locks. Whoever takes several takes them in ascending order of
// index_of(), each once, or tries without waiting.
class SegmentLocks {
 public:
  static constexpr size_t kLocks = 2048;

  static size_t index_of(uint32_t segment) { return segment % kLocks; }
  task::Semaphore& at(size_t index) { return (*locks_)[index].one; }
  task::Semaphore& of(uint32_t segment) { return at(index_of(segment)); }

 private:
  struct Lock {
    task::Semaphore one{1};
  };
  std::unique_ptr<std::array<Lock, kLocks>> locks_ = std::make_unique<std::array<Lock, kLocks>>();
};

}  // namespace cairn::kv::store
