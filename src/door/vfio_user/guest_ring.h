// SPDX-License-Identifier: Apache-2.0
// GuestRing: an array of entries in guest memory that stays at its address while the memory under
// it may come and go.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "door/common/guest_memory.h"

namespace cairn::door::vfio_user {

class GuestRing {
 public:
  // Words of entries are aligned for whoever reads them whole.
  static constexpr size_t kAlignment = 16;

  // What is only read is never noted as written.
  enum class Use : uint8_t { kRead, kWrite };

  GuestRing(door::GuestMemory& memory, uint64_t address, size_t bytes, Use use = Use::kWrite)
      : memory_(memory), address_(address), bytes_(bytes), use_(use) {
    look();
  }

  uint64_t address() const { return address_; }
  // Whether all of it is there now. Pointers into it are good until the caller waits.
  bool is_there() {
    if (generation_ != memory_.generation()) look();
    return begin_ != nullptr;
  }
  std::byte* at(size_t offset) { return begin_ + offset; }

 private:
  void look() {
    generation_ = memory_.generation();
    const door::GuestMemory::Piece piece = memory_.find(address_, bytes_, use_ == Use::kWrite);
    const bool is_aligned_here =
        is_aligned(reinterpret_cast<uintptr_t>(piece.bytes.data()), kAlignment);
    begin_ = piece.is_valid() && is_aligned_here ? piece.bytes.data() : nullptr;
  }

  door::GuestMemory& memory_;
  uint64_t address_;
  size_t bytes_;
  Use use_;
  std::byte* begin_ = nullptr;
  uint64_t generation_ = 0;
};

}  // namespace cairn::door::vfio_user
