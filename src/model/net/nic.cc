// SPDX-License-Identifier: Apache-2.0
#include "model/net/nic.h"

#include <bit>

namespace cairn::net {

uint32_t Nic::add(uint32_t flow) {
  const auto slot = static_cast<uint32_t>(flows_.size());
  flows_.push_back(flow);
  if (slot / 64 >= ready_.size()) ready_.push_back(0);
  ++live_;
  return slot;
}

void Nic::remove(uint32_t slot) {
  clear_ready(slot);
  flows_[slot] = kNobody;
  --live_;
}

uint32_t Nic::next_ready_after(uint32_t slot) const {
  const size_t words = ready_.size();
  if (words == 0) return kNobody;
  size_t word = slot / 64 < words ? slot / 64 : 0;
  const uint64_t after = slot % 64 == 63 ? 0 : ~0ULL << (slot % 64 + 1);
  uint64_t bits = ready_[word] & after;
  for (size_t looked = 0; looked <= words; ++looked) {
    if (bits != 0)
      return static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(std::countr_zero(bits));
    word = word + 1 == words ? 0 : word + 1;
    bits = ready_[word];
  }
  return kNobody;
}

}  // namespace cairn::net
