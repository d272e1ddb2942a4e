// SPDX-License-Identifier: Apache-2.0
#include "bench/alloc_count.h"

#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CAIRN_OWN_OPERATOR_NEW 0
#endif
#endif
#ifndef CAIRN_OWN_OPERATOR_NEW
#define CAIRN_OWN_OPERATOR_NEW 1
#endif

namespace {

constinit thread_local uint64_t count = 0;

}  // namespace

#if CAIRN_OWN_OPERATOR_NEW

namespace {

void* allocate(size_t size) noexcept {
  ++count;
  return std::malloc(size == 0 ? 1 : size);
}

void* allocate_aligned(size_t size, std::align_val_t alignment) noexcept {
  ++count;
  const auto step = static_cast<size_t>(alignment);
  return std::aligned_alloc(step, (size + step - 1) / step * step);
}

// What operator new must do instead of returning null.
void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return or_throw(allocate(size)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new(size_t size, std::align_val_t alignment) {
  return or_throw(allocate_aligned(size, alignment));
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_aligned(size, alignment);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

#endif  // CAIRN_OWN_OPERATOR_NEW

namespace cairn::bench {

uint64_t allocation_count() { return count; }
bool counts_allocations() { return CAIRN_OWN_OPERATOR_NEW != 0; }

}  // namespace cairn::bench
