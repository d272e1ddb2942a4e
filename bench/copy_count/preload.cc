// SPDX-License-Identifier: Apache-2.0
// A library to be loaded before all others (LD_PRELOAD): how many bytes the program copies in large
// pieces, by whatever function of the C library, kept in the file that CAIRN_COPY_COUNT names.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "bench/copy_count/count.h"

namespace {

std::atomic<uint64_t>* count = nullptr;

__attribute__((constructor)) void find_count() {
  const char* path = std::getenv(cairn::bench::kCopyCountVariable);
  if (path == nullptr) return;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* memory = ::mmap(nullptr, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory != MAP_FAILED) count = static_cast<std::atomic<uint64_t>*>(memory);
}

void note(size_t size) {
  if (count != nullptr && size >= cairn::bench::kCopyCountedMin) {
    count->fetch_add(size, std::memory_order_relaxed);
  }
}

// By hand: whatever else copies is defined here.
void forward(std::byte* to, const std::byte* from, size_t size) {
  for (size_t i = 0; i < size; ++i) const_cast<volatile std::byte*>(to)[i] = from[i];
}
void backward(std::byte* to, const std::byte* from, size_t size) {
  for (size_t i = size; i > 0; --i) const_cast<volatile std::byte*>(to)[i - 1] = from[i - 1];
}

void* copy(void* to, const void* from, size_t size) {
  note(size);
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  const bool overlaps = target > source && target < source + size;
  (overlaps ? backward : forward)(target, source, size);
  return to;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void* memcpy(void* to, const void* from, size_t size) {
  return copy(to, from, size);
}
__attribute__((visibility("default"))) void* memmove(void* to, const void* from, size_t size) {
  return copy(to, from, size);
}
__attribute__((visibility("default"))) void* mempcpy(void* to, const void* from, size_t size) {
  return static_cast<std::byte*>(copy(to, from, size)) + size;
}
// As compilers call them where they know the size of what is written to.
__attribute__((visibility("default"))) void* __memcpy_chk(  // NOLINT
    void* to, const void* from, size_t size, size_t room) {
  if (size > room) std::abort();
  return copy(to, from, size);
}
__attribute__((visibility("default"))) void* __memmove_chk(  // NOLINT
    void* to, const void* from, size_t size, size_t room) {
  if (size > room) std::abort();
  return copy(to, from, size);
}

}  // extern "C"
