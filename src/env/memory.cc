// SPDX-License-Identifier: Apache-2.0
#include "env/memory.h"

#include <cstdlib>
#include <cstring>

namespace cairn::env {

namespace {

class HeapMemory final : public Memory {
 public:
  // Over-allocated to find an aligned start; calloc leaves fresh pages untouched.
  explicit HeapMemory(uint64_t size) : block_(std::calloc(1, size + kPage)) {
    if (block_ == nullptr) return;
    const auto start = align_up(reinterpret_cast<uintptr_t>(block_), kPage);
    bytes_ = {reinterpret_cast<std::byte*>(start), size};
  }
  ~HeapMemory() override { std::free(block_); }

  void discard(uint64_t offset, uint64_t length) override {
    const MutableBytes range = bytes_.subspan(offset, length);
    std::memset(range.data(), 0, range.size());
  }

 private:
  static constexpr uint64_t kPage = 4096;
  void* block_;
};

}  // namespace

Result<std::unique_ptr<Memory>> make_heap_memory(uint64_t size) {
  if (size == 0) return fail(Errc::kInvalid, "memory of no size");
  if (size > UINT64_MAX / 2) return fail(Errc::kLimit, "memory");
  auto memory = std::make_unique<HeapMemory>(size);
  if (memory->bytes().empty()) return fail(Errc::kLimit, "memory");
  return memory;
}

}  // namespace cairn::env
