// SPDX-License-Identifier: Apache-2.0
// PieceCursor: a place in a scatter list, which moves forward only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/bytes.h"

namespace cairn::fabric {

// Borrows the list and its memory.
class PieceCursor {
 public:
  PieceCursor() = default;
  // Begins `skip` bytes into the list.
  PieceCursor(std::span<const MutableBytes> pieces, size_t skip) : pieces_(pieces) {
    while (skip > 0 && !pieces_.empty()) skip -= take(skip).size();
  }

  // The next bytes that lie together, `max` at most, which are passed by this. Empty when `max` is
  // 0 or nothing is left.
  MutableBytes take(size_t max) {
    while (!pieces_.empty() && offset_ == pieces_.front().size()) {
      pieces_ = pieces_.subspan(1);
      offset_ = 0;
    }
    if (pieces_.empty()) return {};
    const MutableBytes rest = pieces_.front().subspan(offset_);
    const MutableBytes taken = rest.first(std::min(max, rest.size()));
    offset_ += taken.size();
    return taken;
  }

 private:
  std::span<const MutableBytes> pieces_;
  size_t offset_ = 0;
};

}  // namespace cairn::fabric
