// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <isa-l/crc.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/crc32c_paths.h"

namespace cairn {

namespace {

bool always() { return true; }

// isa-l counts lengths in int.
uint32_t add_by_isal(uint32_t state, const std::byte* from, size_t size) {
  constexpr size_t kMax = size_t{1} << 30;
  while (size > 0) {
    const size_t here = std::min(size, kMax);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(from));
    state = crc32_iscsi(data, static_cast<int>(here), state);
    from += here;
    size -= here;
  }
  return state;
}

// Sums the copy, a part at a time while it is in the nearest cache.
uint32_t copy_by_isal(uint32_t state, std::byte* to, const std::byte* from, size_t size) {
  constexpr size_t kPart = 4096;
  while (size > 0) {
    const size_t here = std::min(size, kPart);
    std::memcpy(to, from, here);
    state = add_by_isal(state, to, here);
    to += here;
    from += here;
    size -= here;
  }
  return state;
}

constexpr Crc32cPath kIsal = {"isa-l", &always, &add_by_isal, &copy_by_isal};

#if defined(__x86_64__)

// The instructions of x86-64, chosen when the program runs.
//
// Folding (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", 2009): 16
// bytes of the message are two polynomials of degree 63, and stand `distance` bits before 16 later
// ones. Their products with x^distance modulo the polynomial have the same remainder and are short
// enough to be added to the later ones. Carry-less products of words whose lowest bit is the
// highest degree come out one place too high, hence the odd exponents.

// What the earlier and the later 8 of 16 bytes are multiplied with, to move by `distance` bits.
consteval long long early(uint32_t distance) { return crc32c_power(distance + 31); }
consteval long long late(uint32_t distance) { return crc32c_power(distance - 33); }
// The same for the state of a register. The CRC32 instruction that takes the product into a
// register divides, and moves by 32 bits more.
consteval long long state_by(uint32_t distance) { return crc32c_power(distance - 33); }

bool has_sse42() { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"); }
bool has_avx512() {
  return has_sse42() && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f");
}

template <class Word>
Word word_at(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// --- SSE 4.2: the CRC32 instruction, three times at once -----------------------------------------

#pragma clang attribute push(__attribute__((target("sse4.2,pclmul"))), apply_to = function)

uint32_t add_words(uint64_t state, const std::byte* from, size_t size) {
  for (; size >= 8; from += 8, size -= 8) state = _mm_crc32_u64(state, word_at<uint64_t>(from));
  auto last = static_cast<uint32_t>(state);
  if ((size & 4) != 0) last = _mm_crc32_u32(last, word_at<uint32_t>(from)), from += 4;
  if ((size & 2) != 0) last = _mm_crc32_u16(last, word_at<uint16_t>(from)), from += 2;
  if ((size & 1) != 0) last = _mm_crc32_u8(last, static_cast<uint8_t>(*from));
  return last;
}

// The instruction takes one step each cycle and three until its result is there, so three parts of
// the message are summed side by side.
template <size_t kPart>
uint64_t add_three(uint64_t first, const std::byte* from) {
  uint64_t second = 0;
  uint64_t third = 0;
  for (size_t i = 0; i < kPart; i += 8) {
    first = _mm_crc32_u64(first, word_at<uint64_t>(from + i));
    second = _mm_crc32_u64(second, word_at<uint64_t>(from + kPart + i));
    third = _mm_crc32_u64(third, word_at<uint64_t>(from + 2 * kPart + i));
  }
  constexpr long long kByTwo = state_by(2 * kPart * 8);
  constexpr long long kByOne = state_by(kPart * 8);
  const __m128i by = _mm_set_epi64x(kByOne, kByTwo);
  const __m128i moved = _mm_xor_si128(
      _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(first)), by, 0),
      _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(second)), by, 0x10));
  return _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(moved))) ^ third;
}

template <size_t kPart>
uint64_t add_threes(uint64_t state, const std::byte*& from, size_t& size) {
  for (; size >= 3 * kPart; from += 3 * kPart, size -= 3 * kPart) {
    state = add_three<kPart>(state, from);
  }
  return state;
}

// Parts of which three are nearly 4 KiB, 512 and 128 bytes.
uint32_t add_by_sse42(uint32_t before, const std::byte* from, size_t size) {
  uint64_t state = before;
  state = add_threes<1360>(state, from, size);
  state = add_threes<168>(state, from, size);
  state = add_threes<40>(state, from, size);
  return add_words(state, from, size);
}

// Sums the copy, a part at a time while it is in the nearest cache.
uint32_t copy_by_sse42(uint32_t state, std::byte* to, const std::byte* from, size_t size) {
  constexpr size_t kPart = 4096;
  for (; size > kPart; to += kPart, from += kPart, size -= kPart) {
    std::memcpy(to, from, kPart);
    state = add_by_sse42(state, to, kPart);
  }
  std::memcpy(to, from, size);
  return add_by_sse42(state, to, size);
}

// The remainder of 16 bytes.
uint32_t state_of(__m128i bytes) {
  const uint64_t state = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(bytes)));
  return static_cast<uint32_t>(
      _mm_crc32_u64(state, static_cast<uint64_t>(_mm_extract_epi64(bytes, 1))));
}

#pragma clang attribute pop

// --- AVX-512: four times 64 bytes at once --------------------------------------------------------
//
// The same with the 32 bytes of AVX2 is no faster than SSE 4.2 above (measured on Zen 5), and
// therefore not here.

#pragma clang attribute push(__attribute__((target("avx512f,vpclmulqdq,sse4.2,pclmul"))), \
                             apply_to = function)

constexpr size_t kVector = 64;

__m512i load(const std::byte* from) { return _mm512_loadu_si512(from); }

// `earlier` moved by what `by` stands for and added to `later`.
__m512i fold(__m512i earlier, __m512i by, __m512i later) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(earlier, by, 0x00),
                                   _mm512_clmulepi64_epi128(earlier, by, 0x11), later, kXorOfThree);
}

template <uint32_t kVectors>
__m512i by_vectors() {
  constexpr long long kEarly = early(kVectors * kVector * 8);
  constexpr long long kLate = late(kVectors * kVector * 8);
  return _mm512_broadcast_i32x4(_mm_set_epi64x(kLate, kEarly));
}

// The remainder of 64 bytes: the first three quarters move to the last.
uint32_t state_of(__m512i bytes) {
  constexpr std::array<long long, 6> kBy = {early(384), late(384),  early(256),
                                            late(256),  early(128), late(128)};
  const __m512i by = _mm512_set_epi64(0, 0, kBy[5], kBy[4], kBy[3], kBy[2], kBy[1], kBy[0]);
  const __m512i moved = fold(bytes, by, _mm512_setzero_si512());
  const __m128i first =
      _mm_xor_si128(_mm512_castsi512_si128(moved), _mm512_extracti32x4_epi32(moved, 1));
  const __m128i second =
      _mm_xor_si128(_mm512_extracti32x4_epi32(moved, 2), _mm512_extracti32x4_epi32(bytes, 3));
  return state_of(_mm_xor_si128(first, second));
}

// What goes through while bytes are summed.
struct OnlySum {
  void put(__m512i, size_t) {}
  void skip(size_t) {}
  const std::byte* rest(const std::byte* from, size_t) { return from; }
};
struct CopyToo {
  std::byte* to;
  void put(__m512i bytes, size_t offset) { _mm512_storeu_si512(to + offset, bytes); }
  void skip(size_t size) { to += size; }
  const std::byte* rest(const std::byte* from, size_t size) {
    std::memcpy(to, from, size);
    return to;
  }
};

template <class Copy>
uint32_t by_avx512(uint32_t state, Copy copy, const std::byte* from, size_t size) {
  constexpr size_t kAtOnce = 4;
  constexpr size_t kWorthwhile = 2 * kVector;
  const auto take = [&](size_t i) {
    const __m512i bytes = load(from + i * kVector);
    copy.put(bytes, i * kVector);
    return bytes;
  };
  const auto pass = [&](size_t vectors) {
    copy.skip(vectors * kVector);
    from += vectors * kVector;
    size -= vectors * kVector;
  };
  if (size >= kWorthwhile) {
    const __m512i by_one = by_vectors<1>();
    __m512i sum = _mm512_xor_si512(
        take(0), _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state))));
    if (size >= 2 * kAtOnce * kVector) {
      const __m512i by_four = by_vectors<kAtOnce>();
      __m512i second = take(1);
      __m512i third = take(2);
      __m512i fourth = take(3);
      for (pass(kAtOnce); size >= kAtOnce * kVector; pass(kAtOnce)) {
        sum = fold(sum, by_four, take(0));
        second = fold(second, by_four, take(1));
        third = fold(third, by_four, take(2));
        fourth = fold(fourth, by_four, take(3));
      }
      sum = fold(fold(fold(sum, by_one, second), by_one, third), by_one, fourth);
    } else {
      pass(1);
    }
    for (; size >= kVector; pass(1)) sum = fold(sum, by_one, take(0));
    state = state_of(sum);
  }
  return add_words(state, copy.rest(from, size), size);
}

uint32_t add_by_avx512(uint32_t state, const std::byte* from, size_t size) {
  return by_avx512(state, OnlySum{}, from, size);
}

uint32_t copy_by_avx512(uint32_t state, std::byte* to, const std::byte* from, size_t size) {
  return by_avx512(state, CopyToo{.to = to}, from, size);
}

#pragma clang attribute pop

constexpr Crc32cPath kAvx512 = {"avx512", &has_avx512, &add_by_avx512, &copy_by_avx512};
constexpr Crc32cPath kSse42 = {"sse4.2", &has_sse42, &add_by_sse42, &copy_by_sse42};
constexpr Crc32cPath kPaths[] = {kAvx512, kSse42, kIsal};

#else

constexpr Crc32cPath kPaths[] = {kIsal};

#endif

const Crc32cPath& path() {
  static const Crc32cPath fastest = *std::ranges::find_if(
      crc32c_paths(), [](const Crc32cPath& each) { return each.runs_here(); });
  return fastest;
}

}  // namespace

std::span<const Crc32cPath> crc32c_paths() { return kPaths; }

// Both inversions are the definition's: see RFC 3720, 12.1.
uint32_t crc32c(Bytes bytes, uint32_t so_far) {
  return ~path().add(~so_far, bytes.data(), bytes.size());
}

uint32_t copy_crc32c(MutableBytes to, Bytes from, uint32_t so_far) {
  CHECK(to.size() == from.size());
  return ~path().copy(~so_far, to.data(), from.data(), from.size());
}

}  // namespace cairn
