// SPDX-License-Identifier: Apache-2.0
// Pieces: a part of a request's memory, for the drive that serves that part.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace cairn::drive {

// Refers to memory that others lend. A few pieces are kept in place; more than that allocate.
class Pieces {
 public:
  // Adds `length` bytes from `offset` on of a scatter list that has them.
  void add(std::span<const MutableBytes> from, size_t offset, size_t length) {
    for (MutableBytes piece : from) {
      if (length == 0) return;
      if (offset >= piece.size()) {
        offset -= piece.size();
        continue;
      }
      const size_t here = std::min(length, piece.size() - offset);
      add(piece.subspan(offset, here));
      offset = 0;
      length -= here;
    }
  }
  std::span<const MutableBytes> all() const {
    return many_.empty() ? std::span(few_).first(count_) : std::span(many_);
  }

 private:
  void add(MutableBytes piece) {
    if (count_ < few_.size()) {
      few_[count_++] = piece;
      return;
    }
    if (many_.empty()) many_.assign(few_.begin(), few_.end());
    many_.push_back(piece);
  }

  std::array<MutableBytes, 8> few_;
  size_t count_ = 0;
  std::vector<MutableBytes> many_;  // all of them, once they are more than a few
};

}  // namespace cairn::drive
