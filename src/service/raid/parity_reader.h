// SPDX-License-Identifier: Apache-2.0
// ParityReader: how parity serves reads. From the leg that has the block, else computed from
// others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "drive/drive.h"
#include "drive/join.h"
#include "service/raid/parity_legs.h"
#include "service/raid/parity_log.h"
#include "service/raid/parity_rows.h"
#include "service/raid/parity_shape.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::drive {

class ParityReader {
 public:
  using Memory = std::span<const MutableBytes>;

  // `leftover` counts changes whose requests have completed: their rows are waited for.
  ParityReader(const ParityContext& context, ParityLegs& legs, ParityLog& log, ParityRows& rows,
               const uint32_t& leftover)
      : context_(context), legs_(legs), log_(log), rows_(rows), leftover_(leftover) {}

  // A read or a compare, as its request says.
  task::Task<Result<void>> read(DriveOp& op);
  // The same for whoever may have the rows alone already, and says so.
  task::Task<Result<void>> read_blocks(const Request& request, Memory memory, bool is_alone,
                                       task::CancelToken token);

 private:
  struct Part {
    Request request;
    RowSpan rows;
    size_t symbol = 0;
    uint64_t offset = 0;  // in the request's memory, in bytes
  };

  task::Task<Result<void>> read_chunks(Request request, Memory memory, bool is_alone,
                                       task::CancelToken token);
  task::Task<void> read_part(Part part, Memory memory, bool is_alone, task::CancelToken token,
                             Join& join);
  task::Task<Result<void>> read_chunk(Part part, Memory memory, bool is_alone,
                                      task::CancelToken token);
  task::Task<Result<void>> compute(Part part, Memory memory, bool is_alone,
                                   task::CancelToken token);
  task::Task<Result<void>> compute_slice(Part part, Memory memory, bool is_alone,
                                         task::CancelToken token);

  const ParityContext& context_;
  ParityLegs& legs_;
  ParityLog& log_;
  ParityRows& rows_;
  const uint32_t& leftover_;
};

}  // namespace cairn::drive
