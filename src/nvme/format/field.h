// SPDX-License-Identifier: Apache-2.0
// What layouts are made of: little-endian numbers, bit fields of a number, and fixed text fields.
//
// Everything here has alignment 1 and no padding, starts as zero and is trivially copyable, so that
// a struct made of it is exactly its bytes and may be loaded from or laid over bytes anywhere.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/bytes.h"

namespace cairn::nvme {

// A little-endian number inside a layout; reads and assigns like the number.
template <std::unsigned_integral T>
class Le {
 public:
  constexpr Le() = default;
  constexpr Le(T value) : bytes_(std::bit_cast<std::array<uint8_t, sizeof(T)>>(value)) {}
  constexpr operator T() const { return value(); }
  // For places that take any type, such as a format argument.
  constexpr T value() const { return std::bit_cast<T>(bytes_); }

 private:
  std::array<uint8_t, sizeof(T)> bytes_{};
};
using Le16 = Le<uint16_t>;
using Le32 = Le<uint32_t>;
using Le64 = Le<uint64_t>;
static_assert(sizeof(Le64) == 8 && alignof(Le64) == 1);

// A 16-byte counter. Counters of ours never leave the low half.
struct Le128 {
  Le64 low;
  Le64 high;
};
static_assert(sizeof(Le128) == 16);

template <size_t N>
using Reserved = std::array<uint8_t, N>;

// Bits High:Low of a number, as the specifications count them.
template <unsigned High, unsigned Low, std::unsigned_integral T>
constexpr T bits(T value) {
  static_assert(Low <= High && High < sizeof(T) * 8);
  return static_cast<T>(static_cast<T>(value << (sizeof(T) * 8 - 1 - High)) >>
                        (sizeof(T) * 8 - 1 - High + Low));
}
template <unsigned High, unsigned Low, std::unsigned_integral T>
constexpr T bits(Le<T> value) {
  return bits<High, Low>(value.value());
}
template <unsigned Bit, class T>
constexpr bool bit(T value) {
  return bits<Bit, Bit>(value) != 0;
}

// A number whose bits High:Low are `value`, the excess cut off, and whose other bits are 0.
template <unsigned High, unsigned Low, std::unsigned_integral T>
constexpr T to_bits(std::type_identity_t<T> value) {
  return static_cast<T>(bits<High - Low, 0>(value) << Low);
}
template <unsigned High, unsigned Low>
constexpr uint32_t to_bits32(uint32_t value) {
  return to_bits<High, Low, uint32_t>(value);
}

// ASCII text of fixed width, left-justified and filled with spaces.
template <size_t N>
struct Ascii {
  std::array<char, N> chars{};

  // Text beyond the width is cut off.
  constexpr void set_padded(std::string_view text) {
    chars.fill(' ');
    std::copy_n(text.begin(), std::min(text.size(), N), chars.begin());
  }
  // Without the filling, be it spaces or, as some write it, zeroes. Valid as long as this.
  constexpr std::string_view trimmed() const {
    const std::string_view all(chars.data(), N);
    const std::string_view text = all.substr(0, std::min(all.find('\0'), N));
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }
};

// The bytes of a layout; valid as long as `layout`.
template <class Layout>
Bytes bytes_of(const Layout& layout) {
  static_assert(std::is_trivially_copyable_v<Layout> && alignof(Layout) == 1);
  return std::as_bytes(std::span<const Layout, 1>(&layout, 1));
}
template <class Layout>
MutableBytes mutable_bytes_of(Layout& layout) {
  static_assert(std::is_trivially_copyable_v<Layout> && alignof(Layout) == 1);
  return std::as_writable_bytes(std::span<Layout, 1>(&layout, 1));
}

}  // namespace cairn::nvme
