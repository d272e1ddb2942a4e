// SPDX-License-Identifier: Apache-2.0
#include "world/uring/buffer_ring.h"

#include <cstdlib>

#include "base/check.h"
#include "world/posix/pages.h"

namespace cairn::uring {

void BufferRing::Free::operator()(std::byte* memory) const { std::free(memory); }

Result<std::unique_ptr<BufferRing>> BufferRing::make(io_uring& ring) {
  std::unique_ptr<BufferRing> made(new BufferRing(ring));
  const size_t page = posix::page_size();
  const size_t shared_size = align_up(kCount * sizeof(io_uring_buf), page);
  const size_t size = align_up(size_t{kCount} * kSize, page);
  made->shared_memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, shared_size)));
  made->memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, size)));
  CHECK(made->shared_memory_ != nullptr && made->memory_ != nullptr);
  std::memset(made->shared_memory_.get(), 0, shared_size);
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<uint64_t>(made->shared_memory_.get());
  registration.ring_entries = kCount;
  registration.bgid = kGroup;
  const int error = ::io_uring_register_buf_ring(&ring, &registration, 0);
  if (error < 0) return fail(Errc::kUnsupported, "io_uring buffer rings", -error);
  made->shared_ = reinterpret_cast<io_uring_buf_ring*>(made->shared_memory_.get());
  ::io_uring_buf_ring_init(made->shared_);
  made->give_more();
  return made;
}

BufferRing::~BufferRing() {
  if (shared_ != nullptr) ::io_uring_unregister_buf_ring(&ring_, kGroup);
}

bool BufferRing::give_more() {
  if (given_ == kCount) return false;
  for (uint32_t i = 0; i < kStep; ++i) give(static_cast<BufferId>(given_++));
  return true;
}

void BufferRing::give(BufferId id) {
  ::io_uring_buf_ring_add(shared_, memory_.get() + offset(id), kSize, id,
                          ::io_uring_buf_ring_mask(kCount), 0);
  ::io_uring_buf_ring_advance(shared_, 1);
}

}  // namespace cairn::uring
