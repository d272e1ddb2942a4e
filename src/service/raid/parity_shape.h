// SPDX-License-Identifier: Apache-2.0
// ParityShape: what never changes about parity that is open, and what its parts share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "env/env.h"
#include "service/raid/parity_format.h"
#include "service/raid/parity_layout.h"
#include "task/cancel.h"
#include "task/gate.h"

namespace cairn::drive {

struct ParityShape {
  ParityLayout layout;
  uint32_t block_size = 0;
  uint64_t rows = 0;
  uint64_t slice = 0;  // the most rows of one update
  uint64_t region_rows = 0;
  size_t regions = 0;
  uint64_t log_offset = 0;  // blocks of a leg
  uint64_t log_blocks = 0;
  uint64_t data_offset = 0;

  static ParityShape of(const ParityLabel& label, uint64_t slice) {
    return {.layout = {.data = static_cast<size_t>(label.legs - label.parity),
                       .legs = label.legs,
                       .chunk = label.chunk_blocks},
            .block_size = label.block_size,
            .rows = label.rows,
            .slice = slice,
            .region_rows = label.region_rows(),
            .regions = label.regions(),
            .log_offset = label.log_offset(),
            .log_blocks = label.log_blocks,
            .data_offset = label.data_offset()};
  }

  uint64_t bytes(uint64_t blocks) const { return blocks * block_size; }
  // Where a row lies on each leg.
  Lba lba(uint64_t row) const { return Lba(data_offset + row); }
  // Rows from there on that one slice may have, up to `end`.
  RowSpan slice_at(uint64_t row, uint64_t end) const {
    return {row, std::min({slice, end - row, layout.chunk - row % layout.chunk})};
  }
  RowSpan regions_of(RowSpan of) const {
    const uint64_t first = of.first / region_rows;
    return {first, (of.end() - 1) / region_rows - first + 1};
  }
};

// Outlives all parts. `gate` is closed after `closing` was requested, and before any of them goes.
struct ParityContext {
  env::Env& env;
  const ParityShape& shape;
  task::Gate& gate;
  task::CancelToken closing;
  Duration retry;  // how often legs that do not do what they must are tried again
};

}  // namespace cairn::drive
