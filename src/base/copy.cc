// SPDX-License-Identifier: Apache-2.0
#include "base/copy.h"

#include <cstring>

#include "base/check.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace cairn {

#if defined(__SSE2__)

namespace {

constexpr size_t kLine = 64;
// Below it the set-up costs more than it saves.
constexpr size_t kWorthwhile = 1024;

// `to` is aligned to a line, `size` a multiple of one.
void stream_lines(std::byte* to, const std::byte* from, size_t size) {
  for (size_t i = 0; i < size; i += kLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from + i);
    auto* target = reinterpret_cast<__m128i*>(to + i);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();  // such stores are not ordered with others by themselves
}

}  // namespace

void copy_past_cache(MutableBytes to, Bytes from) {
  CHECK(to.size() == from.size());
  if (to.size() < kWorthwhile) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  const size_t before = (kLine - reinterpret_cast<uintptr_t>(to.data()) % kLine) % kLine;
  const size_t lines = align_down(to.size() - before, kLine);
  std::memcpy(to.data(), from.data(), before);
  stream_lines(to.data() + before, from.data() + before, lines);
  const size_t done = before + lines;
  std::memcpy(to.data() + done, from.data() + done, to.size() - done);
}

#else

void copy_past_cache(MutableBytes to, Bytes from) {
  CHECK(to.size() == from.size());
  std::memcpy(to.data(), from.data(), from.size());
}

#endif

}  // namespace cairn
