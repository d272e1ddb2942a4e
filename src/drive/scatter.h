// SPDX-License-Identifier: Apache-2.0
// A request's memory as blocks: it comes in pieces that may be cut anywhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/bytes.h"

namespace cairn::drive {

// Copies the bytes from `offset` on of the pieces to `to`, all of it.
inline void gather(std::span<const MutableBytes> pieces, size_t offset, MutableBytes to) {
  for (const MutableBytes piece : pieces) {
    if (to.empty()) return;
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const Bytes here = piece.subspan(offset, std::min(to.size(), piece.size() - offset));
    std::ranges::copy(here, to.begin());
    to = to.subspan(here.size());
    offset = 0;
  }
}
// The way back.
inline void scatter(Bytes from, std::span<const MutableBytes> pieces, size_t offset) {
  for (const MutableBytes piece : pieces) {
    if (from.empty()) return;
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const size_t here = std::min(from.size(), piece.size() - offset);
    std::ranges::copy(from.first(here), piece.begin() + static_cast<ptrdiff_t>(offset));
    from = from.subspan(here);
    offset = 0;
  }
}

// Whether the pieces, from `offset` on, hold these bytes.
inline bool holds(std::span<const MutableBytes> pieces, size_t offset, Bytes bytes) {
  for (const MutableBytes piece : pieces) {
    if (bytes.empty()) break;
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const size_t here = std::min(bytes.size(), piece.size() - offset);
    if (!std::ranges::equal(piece.subspan(offset, here), bytes.first(here))) return false;
    bytes = bytes.subspan(here);
    offset = 0;
  }
  return true;
}

// Calls change(index, block) for each block of the pieces; what it makes of the block stays there.
// A block that lies in two pieces is moved through `scratch`, which is one block.
template <class F>
void change_blocks(std::span<const MutableBytes> pieces, MutableBytes scratch, F change) {
  const size_t size = scratch.size();
  size_t index = 0;
  size_t cut = 0;  // bytes of the next block that lie in pieces before
  for (const MutableBytes piece : pieces) {
    size_t at = 0;
    if (cut > 0) {
      at = std::min(size - cut, piece.size());
      cut += at;
      if (cut < size) continue;
      gather(pieces, index * size, scratch);
      change(index, scratch);
      scatter(scratch, pieces, index * size);
      ++index;
      cut = 0;
    }
    for (; at + size <= piece.size(); at += size) change(index++, piece.subspan(at, size));
    cut = piece.size() - at;
  }
}

// Each byte equals the one before it, and the first is 0.
inline bool is_zero(Bytes bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace cairn::drive
