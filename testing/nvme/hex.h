// SPDX-License-Identifier: Apache-2.0
// Bytes written out by hand, for tests: hex("7f 40 | 0000*2 ff") is 7f 40 00 00 00 00 ff.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

// Bytes that a failed expectation prints in full.
struct HexBytes : std::vector<std::byte> {
  using vector::vector;

  friend void PrintTo(const HexBytes& bytes, std::ostream* out) {
    constexpr char kDigits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = std::to_integer<uint8_t>(bytes[i]);
      if (i % 8 == 0) *out << ' ';
      *out << kDigits[byte >> 4] << kDigits[byte & 15];
    }
  }
};

// Groups of hex digits in wire order; `*n` repeats a group, `|` is only there for the reader.
inline HexBytes hex(std::string text) {
  std::ranges::replace(text, '|', ' ');
  std::istringstream groups(text);
  HexBytes out;
  for (std::string group; groups >> group;) {
    const size_t star = group.find('*');
    const int times = star == std::string::npos ? 1 : std::stoi(group.substr(star + 1));
    const std::string digits = group.substr(0, star);
    for (int i = 0; i < times; ++i) {
      for (size_t at = 0; at + 1 < digits.size(); at += 2) {
        uint8_t byte = 0;
        std::from_chars(digits.data() + at, digits.data() + at + 2, byte, 16);
        out.push_back(std::byte{byte});
      }
    }
  }
  return out;
}

inline HexBytes wire(Bytes bytes) { return HexBytes(bytes.begin(), bytes.end()); }

// The bytes of a layout, comparable with hex().
template <class Layout>
  requires(!std::is_convertible_v<Layout, Bytes>)
HexBytes wire(const Layout& layout) {
  return wire(bytes_of(layout));
}

}  // namespace cairn::nvme
