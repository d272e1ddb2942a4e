// SPDX-License-Identifier: Apache-2.0
// Views of bytes, and little-endian numbers in them (NVMe and our own formats are little-endian).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace cairn {

static_assert(std::endian::native == std::endian::little, "formats are read in place");

// Borrowed bytes. Who lends them says for how long.
using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// Reads or writes a trivially copyable value at any alignment; the span must hold it.
template <class T>
T load(Bytes from) {
  T value;
  std::memcpy(&value, from.first(sizeof(T)).data(), sizeof(T));
  return value;
}
template <class T>
void store(MutableBytes to, const T& value) {
  std::memcpy(to.first(sizeof(T)).data(), &value, sizeof(T));
}

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr bool is_aligned(uint64_t value, uint64_t alignment) { return value % alignment == 0; }
constexpr uint64_t align_down(uint64_t value, uint64_t alignment) {
  return value - value % alignment;
}
constexpr uint64_t align_up(uint64_t value, uint64_t alignment) {
  return align_down(value + alignment - 1, alignment);
}

// The same list, to be read from only: a span of bytes and one of const bytes look alike.
inline std::span<const Bytes> as_const(std::span<const MutableBytes> pieces) {
  return {reinterpret_cast<const Bytes*>(pieces.data()), pieces.size()};
}

// The bytes of a scatter list together.
inline size_t total_size(std::span<const Bytes> pieces) {
  size_t size = 0;
  for (Bytes piece : pieces) size += piece.size();
  return size;
}
inline size_t total_size(std::span<const MutableBytes> pieces) {
  size_t size = 0;
  for (MutableBytes piece : pieces) size += piece.size();
  return size;
}

// Takes the first `count` bytes off a scatter list.
inline void drop_front(std::vector<Bytes>& pieces, size_t count) {
  size_t whole = 0;
  while (whole < pieces.size() && count >= pieces[whole].size()) count -= pieces[whole++].size();
  pieces.erase(pieces.begin(), pieces.begin() + static_cast<ptrdiff_t>(whole));
  if (count > 0) pieces.front() = pieces.front().subspan(count);
}

}  // namespace cairn
