// SPDX-License-Identifier: Apache-2.0
// ParityRows: rows as words of the code. Who has them alone, reading enough of them to know the
// rest, and putting right what a leg does not give back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "drive/join.h"
#include "drive/ranges.h"
#include "service/raid/parity_buffers.h"
#include "service/raid/parity_code.h"
#include "service/raid/parity_legs.h"
#include "service/raid/parity_log.h"
#include "service/raid/parity_shape.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/task.h"

namespace cairn::drive {

// Rows that are held, and for how long they are waited for.
struct RowHold {
  RowHold(env::Env& env, Ranges& ranges, Ranges::Mode mode, RowSpan of, task::CancelToken token)
      : deadline(env, env.now() + kTimeout, token),
        rows(ranges, mode, of.first, of.count, deadline.token()) {}
  static constexpr Duration kTimeout = 10_s;
  task::Deadline deadline;
  Ranges::Hold rows;
};

class ParityRows {
 public:
  ParityRows(const ParityContext& context, ParityLegs& legs, const ParityLog& log);

  ParityCode& code() { return code_; }
  const ParityCode& code() const { return code_; }
  // A change has its rows alone.
  Ranges& ranges() { return ranges_; }
  // Fills `hold`. kIo: an update keeps the rows that waits for lost legs.
  task::Task<Result<void>> take(std::optional<RowHold>& hold, Ranges::Mode mode, RowSpan rows,
                                task::CancelToken token);

  // Any symbols that suffice for all others, but those to `avoid`.
  task::Task<Result<SymbolSet>> read_word(RowSpan rows, SymbolSet avoid, ParityBuffers& into,
                                          task::CancelToken token);
  // By symbol.
  task::Task<ParityOutcome> read_symbols(RowSpan rows, SymbolSet symbols, ParityBuffers& into,
                                         task::CancelToken token);
  // Makes `targets` of `sources`, of that many bytes. They have room. Not inline, as the two below:
  // clang 19 for arm64 hands on a list of pointers that a coroutine made from a frame that is gone.
  void compute(SymbolSet sources, SymbolSet targets, const ParityBuffers& symbols, uint64_t bytes);
  // The same; what `symbols` has no room for is taken from `others`.
  void compute(SymbolSet sources, SymbolSet targets, const ParityBuffers& symbols,
               const ParityBuffers& others, uint64_t bytes);
  // ParityCode::add_change() to `parity` among `symbols`.
  void add_change(size_t symbol, std::byte* change, SymbolSet parity, const ParityBuffers& symbols,
                  uint64_t bytes);
  Result<void> make_room(Scratch& buffer, uint64_t rows) {
    return drive::make_room(context_.env, buffer, context_.shape.bytes(rows));
  }

  // In the background: a block that a leg did not give is computed, and written again. Most media
  // give it back then.
  void restore(RowSpan rows, size_t symbol);
  // Writes what a leg should hold. A leg that does not take it is dropped. The caller has the rows.
  task::Task<Result<void>> mend(RowSpan rows, size_t symbol, MutableBytes content);

  // Blocks were computed because a leg did not give them.
  void count_computed() { ++computed_; }
  uint64_t computed() const { return computed_; }
  uint64_t mended() const { return mended_; }

 private:
  task::Task<void> read_symbol(RowSpan rows, size_t symbol, MutableBytes into,
                               task::CancelToken token, ParityOutcome& outcome, Join& join);
  task::Task<void> write_back(RowSpan rows, size_t symbol);

  const ParityContext& context_;
  ParityLegs& legs_;
  const ParityLog& log_;
  ParityCode code_;
  Ranges ranges_;
  uint64_t computed_ = 0;
  uint64_t mended_ = 0;
};

}  // namespace cairn::drive
