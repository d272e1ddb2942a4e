// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/content_index.h"

#include <array>
#include <bit>

namespace cairn::drive {

namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio

uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 32)) * kOdd;
  value = (value ^ (value >> 29)) * kOdd;
  return value ^ (value >> 32);
}

// Both halves of a product, so that every bit of the value counts for all of them.
uint64_t fold(uint64_t value) {
  const auto product = static_cast<unsigned __int128>(value) * kOdd;
  return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
}

}  // namespace

// Four sums side by side, so that a core multiplies without waiting for itself.
uint64_t content_hash(Bytes bytes) {
  std::array<uint64_t, 4> sums = {1, 2, 3, 4};
  while (bytes.size() >= sizeof sums) {
    const auto words = load<std::array<uint64_t, 4>>(bytes);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = fold(sums[i] ^ words[i]) + kOdd;
    bytes = bytes.subspan(sizeof sums);
  }
  uint64_t hash = bytes.size();
  for (const std::byte byte : bytes) hash = mix(hash ^ std::to_integer<uint64_t>(byte));
  for (const uint64_t sum : sums) hash = mix(hash ^ sum);
  return hash;
}

ContentIndex::ContentIndex(uint64_t units, const SipKey& key)
    : key_(key), references_(units), hashes_(units), slots_(std::bit_ceil(units + units / 3 + 1)) {}

size_t ContentIndex::slot_of(uint64_t hash) const {
  size_t slot = home_of(hash);
  while (slots_[slot] != 0 && hashes_[slots_[slot] - 1] != hash) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

std::optional<uint32_t> ContentIndex::find(uint64_t hash) const {
  const uint32_t found = slots_[slot_of(hash)];
  if (found == 0) return std::nullopt;
  return found - 1;
}

size_t ContentIndex::probes(uint64_t hash) const {
  return ((slot_of(hash) - home_of(hash)) & (slots_.size() - 1)) + 1;
}

bool ContentIndex::refer(uint32_t unit) {
  if (references_[unit] == UINT32_MAX) return false;
  ++references_[unit];
  return true;
}

void ContentIndex::add(uint32_t unit, uint64_t hash) {
  references_[unit] = 1;
  hashes_[unit] = hash;
  uint32_t& slot = slots_[slot_of(hash)];
  if (slot == 0) slot = unit + 1;
}

bool ContentIndex::drop(uint32_t unit) {
  if (--references_[unit] > 0) return false;
  const size_t slot = slot_of(hashes_[unit]);
  if (slots_[slot] == unit + 1) clear(slot);
  return true;
}

// Whatever was put behind it because the slot was taken moves up.
void ContentIndex::clear(size_t slot) {
  const size_t mask = slots_.size() - 1;
  for (size_t next = (slot + 1) & mask; slots_[next] != 0; next = (next + 1) & mask) {
    const size_t home = home_of(hashes_[slots_[next] - 1]);
    if (((next - home) & mask) < ((next - slot) & mask)) continue;
    slots_[slot] = slots_[next];
    slot = next;
  }
  slots_[slot] = 0;
}

}  // namespace cairn::drive
