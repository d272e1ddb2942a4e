// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_rows.h"

#include <bit>
#include <utility>

namespace cairn::drive {

ParityRows::ParityRows(const ParityContext& context, ParityLegs& legs, const ParityLog& log)
    : context_(context),
      legs_(legs),
      log_(log),
      code_(context.shape.layout.data, context.shape.layout.legs - context.shape.layout.data) {}

// An update that waits for lost legs keeps its rows; nobody waits as long as that may take. One
// that is slow is waited for.
task::Task<Result<void>> ParityRows::take(std::optional<RowHold>& hold, Ranges::Mode mode,
                                          RowSpan rows, task::CancelToken token) {
  for (;;) {
    hold.emplace(context_.env, ranges_, mode, rows, token);
    const Result<void> held = co_await hold->rows;
    if (held || token.requested()) co_return held;
    if (log_.is_stuck()) co_return ParityLog::stuck();
  }
}

task::Task<Result<SymbolSet>> ParityRows::read_word(RowSpan rows, SymbolSet avoid,
                                                    ParityBuffers& into, task::CancelToken token) {
  Result<void> failure = fail(Errc::kUnreachable, "more legs are lost than parity can replace");
  SymbolSet have = 0;
  for (;;) {
    auto lack = static_cast<size_t>(std::popcount(code_.data_set()) - std::popcount(have));
    if (lack == 0) co_return have;
    SymbolSet can =
        legs_.symbols_on(rows.first, legs_.in(ParityLegs::State::kGood) & ~legs_.doubtful()) &
        ~avoid;
    SymbolSet ask = 0;
    for (; lack > 0 && can != 0; --lack) {
      ask |= can & -can;
      can &= can - 1;
    }
    if (lack > 0) co_return fail(failure.error());
    avoid |= ask;
    const ParityOutcome outcome = co_await read_symbols(rows, ask, into, token);
    have |= outcome.done;
    if (token.requested()) co_return fail(token.error());
    if (!outcome.other) co_return fail(outcome.other.error());
    if (!outcome.failure) failure = outcome.failure;
  }
}

task::Task<ParityOutcome> ParityRows::read_symbols(RowSpan rows, SymbolSet symbols,
                                                   ParityBuffers& into, task::CancelToken token) {
  ParityOutcome outcome;
  Join join;
  for (size_t symbol = 0; symbol < context_.shape.layout.legs; ++symbol) {
    if ((symbols >> symbol & 1) == 0) continue;
    if (Result<void> room = make_room(into[symbol], rows.count); !room) {
      outcome.other = room;
      break;
    }
    join.add();
    context_.gate.spawn(read_symbol(rows, symbol, into[symbol].bytes(), token, outcome, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // judged symbol by symbol
  co_return outcome;
}

task::Task<void> ParityRows::read_symbol(RowSpan rows, size_t symbol, MutableBytes into,
                                         task::CancelToken token, ParityOutcome& outcome,
                                         Join& join) {
  const size_t leg = context_.shape.layout.leg_of(rows.first, symbol);
  const Result<void> answer =
      co_await legs_[leg].drive->read(context_.shape.lba(rows.first), into, token);
  const Result<void> done = legs_.believed(leg, answer);
  if (done) {
    outcome.done |= SymbolSet{1} << symbol;
  } else if (blames_leg(done.error()) && !token.requested()) {
    outcome.failed |= SymbolSet{1} << symbol;
    if (outcome.failure) outcome.failure = done;
  } else {
    outcome.other = done;
  }
  join.finish(done);
}

void ParityRows::restore(RowSpan rows, size_t symbol) {
  if (!context_.closing.requested()) context_.gate.spawn(write_back(rows, symbol));
}

task::Task<void> ParityRows::write_back(RowSpan rows, size_t symbol) {
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, rows.first, rows.count, context_.closing);
  const Result<void> held = co_await hold;
  if (!held) co_return;
  const size_t leg = context_.shape.layout.leg_of(rows.first, symbol);
  const SymbolSet target = SymbolSet{1} << symbol;
  for (uint64_t row = rows.first; row < rows.end();) {
    const RowSpan slice = context_.shape.slice_at(row, rows.end());
    ParityBuffers symbols;
    const Result<SymbolSet> sources = co_await read_word(slice, target, symbols, context_.closing);
    if (!sources || !make_room(symbols[symbol], slice.count)) co_return;
    if (legs_[leg].state != ParityLegs::State::kGood) co_return;
    compute(*sources, target, symbols, symbols[symbol].size());
    const Result<void> mended = co_await mend(slice, symbol, symbols[symbol].bytes());
    if (!mended) co_return;
    row = slice.end();
  }
}

task::Task<Result<void>> ParityRows::mend(RowSpan rows, size_t symbol, MutableBytes content) {
  const Request request{
      .kind = Request::Kind::kWrite, .lba = context_.shape.lba(rows.first), .blocks = rows.count};
  ParityOutcome outcome;
  Join join;
  join.add();
  co_await legs_.submit_to(context_.shape.layout.leg_of(rows.first, symbol), request, {&content, 1},
                           outcome, join);
  const Result<void> judged = co_await legs_.judge(outcome);
  if (!judged) co_return judged;
  if (outcome.done == 0) co_return outcome.failure;
  mended_ += rows.count;
  co_return Result<void>();
}

void ParityRows::compute(SymbolSet sources, SymbolSet targets, const ParityBuffers& symbols,
                         uint64_t bytes) {
  code_.make(sources, targets, pointers(symbols), bytes);
}

void ParityRows::compute(SymbolSet sources, SymbolSet targets, const ParityBuffers& symbols,
                         const ParityBuffers& others, uint64_t bytes) {
  std::array<std::byte*, kSymbolsMax> all = pointers(symbols);
  for (size_t symbol = 0; symbol < all.size(); ++symbol) {
    if (all[symbol] == nullptr) all[symbol] = others[symbol].data();
  }
  code_.make(sources, targets, all, bytes);
}

void ParityRows::add_change(size_t symbol, std::byte* change, SymbolSet parity,
                            const ParityBuffers& symbols, uint64_t bytes) {
  code_.add_change(symbol, change, parity, pointers(symbols), bytes);
}

}  // namespace cairn::drive
