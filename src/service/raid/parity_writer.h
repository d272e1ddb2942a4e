// SPDX-License-Identifier: Apache-2.0
// ParityWriter: how parity serves changes. Which blocks become what, and the parity that follows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "drive/drive.h"
#include "drive/join.h"
#include "service/raid/parity_buffers.h"
#include "service/raid/parity_legs.h"
#include "service/raid/parity_log.h"
#include "service/raid/parity_reader.h"
#include "service/raid/parity_rows.h"
#include "service/raid/parity_shape.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

class ParityWriter {
 public:
  ParityWriter(const ParityContext& context, ParityLegs& legs, ParityLog& log, ParityRows& rows)
      : context_(context),
        legs_(legs),
        log_(log),
        rows_(rows),
        reader_(context, legs, log, rows, leftover_) {}

  ParityReader& reader() { return reader_; }

  // All kinds of requests that write. A change goes on by itself once parts of it are in logs, even
  // if its request is cancelled.
  task::Task<Result<void>> change(DriveOp& op);

 private:
  using Memory = std::span<const MutableBytes>;
  // A change as its request sees it.
  struct Waiting {
    task::Event done;
    Result<void> result;
  };
  // It may outlive the request, whose memory it then lacks.
  struct Change final : ParityLog::Waiter {
    explicit Change(uint32_t& leftover) : leftover(leftover) {}
    void update_is_stuck(const Result<void>& why) override;
    void report(const Result<void>& result);

    uint32_t& leftover;
    Request request;
    Memory data;
    Memory second;
    Waiting* waiting = nullptr;  // null: the request is gone
    bool is_comparing = false;   // its memory is lent to drives below
    task::CancelSource stop;
  };

  task::Task<void> apply(std::unique_ptr<Change> change);
  task::Task<Result<void>> apply_alone(Change& change);
  task::Task<void> write_segment(Change& change, ParityLayout::Segment segment, Join& join);
  task::Task<Result<void>> run_segment(Change& change, ParityLayout::Segment segment);
  task::Task<void> zero_stripes(Change& change, RowSpan rows, Join& join);
  // The request's bytes, as long as they are lent.
  Result<void> take_data(Change& change, const ParityLayout::Segment& segment,
                         ParityBuffers& fresh);
  task::Task<Result<void>> make_parity(RowSpan rows, SymbolSet written, ParityBuffers& fresh,
                                       task::CancelToken token);

  const ParityContext& context_;
  ParityLegs& legs_;
  ParityLog& log_;
  ParityRows& rows_;
  uint32_t leftover_ = 0;  // changes whose requests have completed
  ParityReader reader_;
};

}  // namespace cairn::drive
