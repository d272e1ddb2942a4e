// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_writer.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/check.h"
#include "drive/scatter.h"

namespace cairn::drive {

namespace {

// A request's kind says so, and never its memory, which zeroes may come with or without.
bool is_zeroing(const Request& request) {
  return request.kind == Request::Kind::kDiscard || request.kind == Request::Kind::kWriteZeroes;
}

// Old bytes become the difference of old and new ones.
void subtract(MutableBytes old, Bytes fresh) {
  for (size_t i = 0; i < old.size(); ++i) old[i] ^= fresh[i];
}

}  // namespace

task::Task<Result<void>> ParityWriter::change(DriveOp& op) {
  if (legs_.doubtful() != 0) {
    const Result<void> tried = co_await log_.recovery_tried().wait(op.token());
    if (!tried) co_return tried;
  }
  if (log_.is_stuck()) co_return ParityLog::stuck();
  Waiting waiting;
  auto made = std::make_unique<Change>(leftover_);
  made->request = op.request;
  made->data = op.data();
  made->second = op.second();
  made->waiting = &waiting;
  Change& change = *made;
  context_.gate.spawn(apply(std::move(made)));
  const Result<void> waited = co_await waiting.done.wait(op.token());
  if (waiting.done.is_set()) co_return waiting.result;
  if (change.is_comparing) {
    // The drives below have the request's memory.
    change.stop.request(waited.error().code());
    const Result<void> done = co_await waiting.done.wait();
    CHECK(done.has_value());
    co_return waiting.result;
  }
  change.waiting = nullptr;
  ++leftover_;
  change.stop.request(waited.error().code());
  co_return waited;
}

void ParityWriter::Change::update_is_stuck(const Result<void>& why) {
  if (waiting != nullptr) ++leftover;
  report(why);
}

void ParityWriter::Change::report(const Result<void>& result) {
  if (waiting == nullptr) return;
  waiting->result = result;
  waiting->done.set();
  waiting = nullptr;
}

task::Task<void> ParityWriter::apply(std::unique_ptr<Change> change) {
  const uint64_t first = change->request.lba.value();
  const RowSpan rows = context_.shape.layout.rows_of(first, change->request.blocks);
  std::optional<RowHold> hold;
  Result<void> done =
      co_await rows_.take(hold, Ranges::Mode::kExclusive, rows, change->stop.token());
  if (done) done = co_await apply_alone(*change);
  if (change->waiting == nullptr) --leftover_;
  change->report(done);
}

task::Task<Result<void>> ParityWriter::apply_alone(Change& change) {
  const Request& request = change.request;
  if (request.kind == Request::Kind::kCompareAndWrite) {
    Request compare = request;
    compare.kind = Request::Kind::kCompare;
    change.is_comparing = change.waiting != nullptr;
    Result<void> equal = fail(Errc::kCancelled, "cancellation");
    if (change.is_comparing) {
      equal = co_await reader_.read_blocks(compare, change.data, true, change.stop.token());
    }
    change.is_comparing = false;
    if (equal && change.stop.requested()) equal = fail(change.stop.token().error());
    if (!equal) co_return equal;
    change.data = change.second;
  }
  uint64_t at = request.lba.value();
  const uint64_t end = at + request.blocks;
  Join join;
  const auto write = [&](uint64_t from, uint64_t to) {
    context_.shape.layout.for_each_segment(
        from, to - from, context_.shape.slice, [&](const ParityLayout::Segment& segment) {
          join.add();
          context_.gate.spawn(write_segment(change, segment, join));
        });
  };
  const uint64_t stripe = context_.shape.layout.stripe_blocks();
  const uint64_t whole_begin = align_up(at, stripe);
  const uint64_t whole_end = align_down(end, stripe);
  if (is_zeroing(request) && whole_begin < whole_end) {
    write(at, whole_begin);
    join.add();
    const uint64_t first_row = whole_begin / stripe * context_.shape.layout.chunk;
    context_.gate.spawn(zero_stripes(
        change, {first_row, whole_end / stripe * context_.shape.layout.chunk - first_row}, join));
    at = whole_end;
  }
  write(at, end);
  co_return co_await join.all();
}

// Zeroes are a word of the code: whole stripes of them need no parity and no blocks in logs.
task::Task<void> ParityWriter::zero_stripes(Change& change, RowSpan rows, Join& join) {
  ParityUpdate update{.rows = rows,
                      .kind = change.request.kind,
                      .keep_space = change.request.keep_space,
                      .priority = change.request.priority,
                      .legs = first_symbols(context_.shape.layout.legs)};
  Result<void> done = co_await log_.admit(update, change.stop.token());
  if (done) done = co_await log_.commit(update, change);
  join.finish(done);
}

task::Task<void> ParityWriter::write_segment(Change& change, ParityLayout::Segment segment,
                                             Join& join) {
  const Result<void> done = co_await run_segment(change, segment);
  join.finish(done);
}

task::Task<Result<void>> ParityWriter::run_segment(Change& change, ParityLayout::Segment segment) {
  ParityUpdate update{.rows = segment.rows, .priority = change.request.priority};
  Result<void> done = co_await log_.admit(update, change.stop.token());
  if (!done) co_return done;
  ParityBuffers fresh;  // by symbol
  done = take_data(change, segment, fresh);
  if (!done) co_return done;
  const SymbolSet written = first_symbols(segment.symbols) << segment.first_symbol;
  done = co_await make_parity(segment.rows, written, fresh, change.stop.token());
  if (!done) co_return done;
  for (size_t symbol = 0; symbol < context_.shape.layout.legs; ++symbol) {
    if (fresh[symbol].empty()) continue;
    const size_t leg = context_.shape.layout.leg_of(segment.rows.first, symbol);
    update.content[leg] = std::move(fresh[symbol]);
    update.legs |= LegSet{1} << leg;
  }
  co_return co_await log_.commit(update, change);
}

Result<void> ParityWriter::take_data(Change& change, const ParityLayout::Segment& segment,
                                     ParityBuffers& fresh) {
  if (change.waiting == nullptr) return fail(Errc::kCancelled, "cancellation");
  for (size_t i = 0; i < segment.symbols; ++i) {
    const size_t symbol = segment.first_symbol + i;
    if (Result<void> room = rows_.make_room(fresh[symbol], segment.rows.count); !room) return room;
    const MutableBytes to = fresh[symbol].bytes();
    if (is_zeroing(change.request)) {
      std::ranges::fill(to, std::byte{0});
      continue;
    }
    const uint64_t block = context_.shape.layout.block_at(segment.rows.first, symbol);
    gather(change.data, (block - change.request.lba.value()) * context_.shape.block_size, to);
  }
  return {};
}

// Adds to the new data symbols the parity that follows, where a leg takes it. Reads the old data
// and parity, or the rest of the row, whichever is less; if some of that cannot be had, whatever
// gives back the rest of the row.
task::Task<Result<void>> ParityWriter::make_parity(RowSpan rows, SymbolSet written,
                                                   ParityBuffers& fresh, task::CancelToken token) {
  const SymbolSet data = rows_.code().data_set();
  const SymbolSet rest = data & ~written;
  const uint64_t bytes = rows.count * context_.shape.block_size;
  SymbolSet unreadable = 0;
  for (;;) {
    const SymbolSet good = legs_.symbols_on(rows.first, legs_.in(ParityLegs::State::kGood));
    const SymbolSet readable = good & ~unreadable;
    const SymbolSet copying = legs_.symbols_on(rows.first, legs_.in(ParityLegs::State::kCopying));
    const SymbolSet wanted = rows_.code().parity_set() & (good | copying);
    if (wanted == 0) co_return Result<void>();
    const bool can_add = ((written | wanted) & ~readable) == 0;
    const bool can_encode = (rest & ~readable) == 0;
    const bool adds =
        can_add && (!can_encode || std::popcount(written | wanted) < std::popcount(rest));
    ParityBuffers old;
    SymbolSet failed = 0;
    if (adds || can_encode) {
      const ParityOutcome outcome =
          co_await rows_.read_symbols(rows, adds ? written | wanted : rest, old, token);
      if (!outcome.other) co_return outcome.other;
      failed = outcome.failed;
    } else {
      const Result<SymbolSet> sources = co_await rows_.read_word(rows, unreadable, old, token);
      if (!sources) co_return fail(sources.error());
      const SymbolSet lost = rest & ~*sources;
      for (size_t symbol = 0; symbol < context_.shape.layout.data; ++symbol) {
        if ((lost >> symbol & 1) == 0) continue;
        // What a failed read left is no symbol: its room is used again.
        if (Result<void> room = rows_.make_room(old[symbol], rows.count); !room) co_return room;
      }
      rows_.compute(*sources, lost, old, bytes);
      rows_.count_computed();
    }
    if (token.requested()) co_return fail(token.error());
    if (failed != 0) {
      unreadable |= failed;
      continue;
    }
    for (size_t symbol = context_.shape.layout.data; symbol < context_.shape.layout.legs;
         ++symbol) {
      if ((wanted >> symbol & 1) == 0) continue;
      if (adds) fresh[symbol] = std::move(old[symbol]);
      if (Result<void> room = rows_.make_room(fresh[symbol], rows.count); !room) co_return room;
    }
    if (adds) {
      for (size_t symbol = 0; symbol < context_.shape.layout.data; ++symbol) {
        if ((written >> symbol & 1) == 0) continue;
        subtract(old[symbol].bytes(), fresh[symbol].bytes());
        rows_.add_change(symbol, old[symbol].data(), wanted, fresh, bytes);
      }
    } else {
      rows_.compute(data, wanted, fresh, old, bytes);
    }
    break;
  }
  for (size_t symbol = 0; symbol < context_.shape.layout.data; ++symbol) {
    const bool is_to_mend = ((unreadable & rest) >> symbol & 1) != 0;
    if (is_to_mend) rows_.restore(rows, symbol);
  }
  co_return Result<void>();
}

}  // namespace cairn::drive
