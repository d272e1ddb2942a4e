// SPDX-License-Identifier: Apache-2.0
// The arithmetic behind CRC32C, and the ways to compute it, one of which crc32c() takes: for tests
// and benchmarks, which take each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cairn {

struct Crc32cPath {
  std::string_view name;
  bool (*runs_here)();  // whether this processor has the instructions
  // The state of the register after these bytes. Neither side is inverted: see crc32c().
  uint32_t (*add)(uint32_t state, const std::byte* from, size_t size);
  // The same while they are copied.
  uint32_t (*copy)(uint32_t state, std::byte* to, const std::byte* from, size_t size);
};

// Fastest first. The last one runs everywhere.
std::span<const Crc32cPath> crc32c_paths();

// Polynomials over GF(2) modulo Castagnoli's. A remainder is a uint32_t whose highest bit is the
// coefficient of x^0, as the bytes of a CRC32C have it. Nothing here is fast: constants come of it
// when the program is compiled.
inline constexpr uint32_t kCrc32cPolynomial = 0x82f63b78;

constexpr uint32_t crc32c_times_x(uint32_t a) {
  return (a & 1) != 0 ? (a >> 1) ^ kCrc32cPolynomial : a >> 1;
}

constexpr uint32_t crc32c_product(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = crc32c_times_x(b);
  }
  return product;
}

// x to the power of `exponent`.
constexpr uint32_t crc32c_power(uint64_t exponent) {
  uint32_t power = uint32_t{1} << 31;
  uint32_t square = uint32_t{1} << 30;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) power = crc32c_product(power, square);
    square = crc32c_product(square, square);
  }
  return power;
}

}  // namespace cairn
