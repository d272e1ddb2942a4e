// SPDX-License-Identifier: Apache-2.0
#include "task/frame.h"

#include <new>

namespace cairn::task {

namespace {

constexpr size_t kStep = 64;
constexpr size_t kPooledMax = 4096;

struct FreeFrame {
  FreeFrame* next;
};

constinit thread_local FreeFrame* free_frames[kPooledMax / kStep + 1] = {};
constinit thread_local uint64_t heap_count = 0;

// Under AddressSanitizer every frame is a heap block of its own, so that a use after free shows.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kPooled = false;
#else
constexpr bool kPooled = true;
#endif
#else
constexpr bool kPooled = true;
#endif

constexpr size_t class_of(size_t size) { return (size + kStep - 1) / kStep; }

}  // namespace

void* allocate_frame(size_t size) {
  if (kPooled && size <= kPooledMax) {
    const size_t size_class = class_of(size);
    if (FreeFrame* frame = free_frames[size_class]; frame != nullptr) {
      free_frames[size_class] = frame->next;
      return frame;
    }
    size = size_class * kStep;
  }
  ++heap_count;
  return ::operator new(size);
}

void free_frame(void* frame, size_t size) {
  if (!kPooled || size > kPooledMax) return ::operator delete(frame);
  const size_t size_class = class_of(size);
  auto* free = static_cast<FreeFrame*>(frame);
  free->next = free_frames[size_class];
  free_frames[size_class] = free;
}

void trim_frames() {
  for (FreeFrame*& list : free_frames) {
    while (list != nullptr) {
      FreeFrame* next = list->next;
      ::operator delete(list);
      list = next;
    }
  }
}

uint64_t frame_heap_count() { return heap_count; }

}  // namespace cairn::task
