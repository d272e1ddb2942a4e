// SPDX-License-Identifier: Apache-2.0
// ParityLayout: where the blocks of the drive lie in rows of legs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cairn::drive {

// Rows, or blocks of a leg, that follow each other.
struct RowSpan {
  uint64_t first = 0;
  uint64_t count = 0;
  uint64_t end() const { return first + count; }
};

struct ParityLayout {
  size_t data = 0;  // symbols of a row
  size_t legs = 0;
  uint64_t chunk = 0;  // rows of a stripe

  struct SymbolPosition {
    uint64_t row = 0;
    size_t symbol = 0;
    uint64_t run = 0;  // blocks from here on that are the same symbol of the rows that follow
  };
  SymbolPosition locate(uint64_t block) const {
    const uint64_t within = block % stripe_blocks();
    const uint64_t into = within % chunk;
    return {.row = block / stripe_blocks() * chunk + into,
            .symbol = within / chunk,
            .run = chunk - into};
  }
  uint64_t block_at(uint64_t row, size_t symbol) const {
    return row / chunk * stripe_blocks() + symbol * chunk + row % chunk;
  }
  uint64_t stripe_blocks() const { return chunk * data; }
  size_t leg_of(uint64_t row, size_t symbol) const { return (symbol + row / chunk) % legs; }

  // The rows that these blocks are of: exactly when they are in one chunk, else whole stripes.
  RowSpan rows_of(uint64_t block, uint64_t count) const {
    const SymbolPosition first = locate(block);
    if (count <= first.run) return {first.row, count};
    const uint64_t begin = block / stripe_blocks() * chunk;
    return {begin, ((block + count - 1) / stripe_blocks() + 1) * chunk - begin};
  }

  // Some rows of one stripe, and which data symbols of them: a rectangle of blocks.
  struct Segment {
    RowSpan rows;
    size_t first_symbol = 0;
    size_t symbols = 0;
  };
  // Calls visit(Segment) for rectangles that together are these blocks, each of at most `max`
  // rows, no two with a row in common.
  template <class F>
  void for_each_segment(uint64_t block, uint64_t count, uint64_t max, F visit) const {
    const uint64_t end = block + count;
    for (uint64_t at = block; at < end;) {
      const uint64_t stripe = at / stripe_blocks();
      const uint64_t stop = std::min(end, (stripe + 1) * stripe_blocks());
      cut_stripe(stripe, at % stripe_blocks(), stop - stripe * stripe_blocks(), max, visit);
      at = stop;
    }
  }

 private:
  // From row x of symbol a to before row y of symbol b: rows below x, between and above differ in
  // which symbols they have.
  template <class F>
  void cut_stripe(uint64_t stripe, uint64_t from, uint64_t to, uint64_t max, F& visit) const {
    const size_t a = from / chunk;
    const uint64_t x = from % chunk;
    const size_t b = (to - 1) / chunk;
    const uint64_t y = (to - 1) % chunk + 1;
    const auto cut = [&](uint64_t begin, uint64_t end, size_t first, size_t last) {
      for (uint64_t row = begin; first <= last && row < end; row += max) {
        visit(Segment{.rows = {stripe * chunk + row, std::min(max, end - row)},
                      .first_symbol = first,
                      .symbols = last - first + 1});
      }
    };
    if (a == b) return cut(x, y, a, a);
    cut(0, std::min(x, y), a + 1, b);
    if (x < y) {
      cut(x, y, a, b);
    } else if (b > a + 1) {
      cut(y, x, a + 1, b - 1);
    }
    cut(std::max(x, y), chunk, a, b - 1);
  }
};

}  // namespace cairn::drive
