// SPDX-License-Identifier: Apache-2.0
// ParityScrub: whether all rows are words of the code, and mending those that are not.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "base/error.h"
#include "service/common/pace.h"
#include "service/raid/parity_buffers.h"
#include "service/raid/parity_legs.h"
#include "service/raid/parity_log.h"
#include "service/raid/parity_rows.h"
#include "service/raid/parity_shape.h"
#include "task/task.h"

namespace cairn::drive {

class ParityScrub {
 public:
  ParityScrub(const ParityContext& context, ParityLegs& legs, ParityLog& log, ParityRows& rows,
              Pace& pace)
      : context_(context), legs_(legs), log_(log), rows_(rows), pace_(pace) {}

  // Compares all rows, one scrub at a time. What it found, or why it ended early, for the user.
  task::Task<std::expected<std::string, std::string>> run();

  bool runs() const { return runs_; }
  uint64_t row() const { return row_; }  // that it is at

 private:
  struct Scrubbed {
    uint64_t rows = 0;
    uint64_t wrong = 0;       // rows that were no words of the code
    uint64_t located = 0;     // of them, those of which one block was known to be wrong
    uint64_t unreadable = 0;  // blocks
  };
  task::Task<Result<void>> scrub(Scrubbed& found);
  task::Task<Result<void>> scrub_rows(RowSpan rows, Scrubbed& found);
  task::Task<Result<void>> scrub_alone(RowSpan rows, Scrubbed& found);
  task::Task<Result<void>> scrub_unreadable(RowSpan rows, ParityOutcome outcome,
                                            ParityBuffers& word, Scrubbed& found);
  SymbolSet find_wrong(const ParityBuffers& word, uint64_t row, ParityBuffers& right);

  const ParityContext& context_;
  ParityLegs& legs_;
  ParityLog& log_;
  ParityRows& rows_;
  Pace& pace_;
  bool runs_ = false;
  uint64_t row_ = 0;
};

}  // namespace cairn::drive
