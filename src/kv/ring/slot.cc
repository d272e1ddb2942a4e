// SPDX-License-Identifier: Apache-2.0
#include "kv/ring/slot.h"

#include <array>
#include <cstddef>

namespace cairn::kv::ring {

namespace {

constexpr uint16_t kPolynomial = 0x1021;

constexpr std::array<uint16_t, 256> make_table() {
  std::array<uint16_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t sum = byte << 8;
    for (int bit = 0; bit < 8; ++bit) sum = sum << 1 ^ ((sum & 0x8000) != 0 ? kPolynomial : 0);
    table[byte] = static_cast<uint16_t>(sum);
  }
  return table;
}
constexpr std::array<uint16_t, 256> kTable = make_table();

uint16_t crc16(std::string_view text) {
  uint16_t sum = 0;
  for (const char c : text) {
    sum = static_cast<uint16_t>(sum << 8 ^ kTable[sum >> 8 ^ static_cast<uint8_t>(c)]);
  }
  return sum;
}

std::string_view tag_of(std::string_view key) {
  const size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

}  // namespace

uint32_t slot_of(std::string_view key) { return crc16(tag_of(key)) % kSlots; }

}  // namespace cairn::kv::ring
