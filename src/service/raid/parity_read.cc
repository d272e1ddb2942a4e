// SPDX-License-Identifier: Apache-2.0
// How parity serves reads: from the leg that has the block, else computed from others.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "drive/pieces.h"
#include "service/raid/parity_drive.h"

namespace cairn::drive {

namespace {

// Gives the bytes to whoever reads, or tells whether they are what he expects.
Result<void> deliver(Bytes from, Request::Kind kind, std::span<const MutableBytes> pieces) {
  for (const MutableBytes piece : pieces) {
    if (kind == Request::Kind::kRead) {
      std::memcpy(piece.data(), from.data(), piece.size());
    } else if (std::memcmp(piece.data(), from.data(), piece.size()) != 0) {
      return fail(Errc::kMismatch, "compare");
    }
    from = from.subspan(piece.size());
  }
  return {};
}

}  // namespace

task::Task<Result<void>> ParityDrive::run(DriveOp& op) {
  switch (op.request.kind) {
    case Request::Kind::kRead:
    case Request::Kind::kCompare:
      return read(op);
    case Request::Kind::kFlush:
      return flush();
    default:
      return change(op);
  }
}

// While logs are replayed because too many legs were restarted, blocks cannot be had: one attempt
// is waited for.
task::Task<Result<void>> ParityDrive::read(DriveOp& op) {
  const Result<void> done = co_await read_blocks(op.request, op.data(), false, op.token());
  if (done || doubts_ == 0 || !blames_leg(done.error()) || op.token().requested()) co_return done;
  const Result<void> waited = co_await recovery_tried_.wait(op.token());
  if (!waited) co_return waited;
  co_return co_await read_blocks(op.request, op.data(), false, op.token());
}

// What completed is in logs, durably.
task::Task<Result<void>> ParityDrive::flush() {
  if (is_broken_) co_return fail(Errc::kClosed, "parity is being closed");
  co_return Result<void>();
}

task::Task<Result<void>> ParityDrive::read_blocks(const Request& request, Memory memory,
                                                  bool is_alone, task::CancelToken token) {
  const ParityLayout::Place place = layout_.locate(request.lba.value());
  if (request.blocks > place.run) return read_chunks(request, memory, is_alone, token);
  const Part part{.request = request, .rows = {place.row, request.blocks}, .symbol = place.symbol};
  return read_chunk(part, memory, is_alone, token);
}

task::Task<Result<void>> ParityDrive::read_chunks(Request request, Memory memory, bool is_alone,
                                                  task::CancelToken token) {
  Join join;
  for (uint64_t done = 0; done < request.blocks;) {
    const ParityLayout::Place place = layout_.locate(request.lba.value() + done);
    const uint64_t run = std::min(place.run, request.blocks - done);
    const Part part{.request = request,
                    .rows = {place.row, run},
                    .symbol = place.symbol,
                    .offset = done * geometry_.block_size};
    join.add();
    gate().spawn(read_part(part, memory, is_alone, token, join));
    done += run;
  }
  co_return co_await join.all();
}

task::Task<void> ParityDrive::read_part(Part part, Memory memory, bool is_alone,
                                        task::CancelToken token, Join& join) {
  const Result<void> done = co_await read_chunk(part, memory, is_alone, token);
  join.finish(done);
}

// An update that waits for lost legs keeps its rows; nobody waits as long as that may take. One
// that is slow is waited for.
task::Task<Result<void>> ParityDrive::take(std::optional<RowHold>& hold, Ranges::Mode mode,
                                           RowSpan rows, task::CancelToken token) {
  for (;;) {
    hold.emplace(*this, mode, rows, token);
    const Result<void> held = co_await hold->rows;
    if (held || token.requested()) co_return held;
    if (stuck_ > 0 || is_broken_) {
      co_return fail(Errc::kIo, "more legs fail than parity can replace");
    }
  }
}

task::Task<Result<void>> ParityDrive::read_chunk(Part part, Memory memory, bool is_alone,
                                                 task::CancelToken token) {
  std::optional<RowHold> hold;
  if (leftover_ > 0 && !is_alone) {
    const Result<void> held = co_await take(hold, Ranges::Mode::kShared, part.rows, token);
    if (!held) co_return held;
    is_alone = true;
  }
  const size_t index = layout_.leg_of(part.rows.first, part.symbol);
  const size_t copy = std::exchange(part.request.copy, 0);
  part.request.durable = false;
  bool has_failed = false;
  if (copy != 2 && is_trusted(index)) {
    part.request.lba = Lba(label().data_offset() + part.rows.first);
    part.request.blocks = part.rows.count;
    Pieces pieces;
    pieces.add(memory, part.offset, part.rows.count * geometry_.block_size);
    const Result<void> answer =
        co_await legs_[index].drive->submit(part.request, pieces.all(), {}, token);
    const Result<void> done = believed(index, answer);
    if (done || copy == 1 || token.requested() || !blames_leg(done.error())) co_return done;
    has_failed = true;
  } else if (copy == 1) {
    co_return fail(Errc::kUnreachable, "the leg that has this block is lost");
  }
  const Result<void> done = co_await compute(part, memory, is_alone, token);
  const bool is_back = !has_failed && copy == 0 && is_trusted(index);
  if (!done && is_back && done.error() == Errc::kUnreachable && !token.requested()) {
    // It got all it lacked while this waited, and another one was lost that was to replace it.
    co_return co_await read_chunk(part, memory, is_alone, token);
  }
  if (done && has_failed && !closing_.requested()) {
    gate().spawn(write_back(part.rows, part.symbol));
  }
  co_return done;
}

task::Task<Result<void>> ParityDrive::compute(Part part, Memory memory, bool is_alone,
                                              task::CancelToken token) {
  const RowSpan rows = part.rows;
  for (uint64_t row = rows.first; row < rows.end(); row += part.rows.count) {
    part.rows = slice_at(row, rows.end());
    const Result<void> done = co_await compute_slice(part, memory, is_alone, token);
    if (!done) co_return done;
    part.offset += part.rows.count * geometry_.block_size;
  }
  co_return Result<void>();
}

task::Task<Result<void>> ParityDrive::compute_slice(Part part, Memory memory, bool is_alone,
                                                    task::CancelToken token) {
  std::optional<RowHold> hold;
  if (!is_alone) {
    const Result<void> held = co_await take(hold, Ranges::Mode::kShared, part.rows, token);
    if (!held) co_return held;
  }
  const uint64_t wanted = units_of(part.rows.count);
  const Result<void> got = co_await units_.acquire(wanted, token);
  if (!got) co_return got;
  const task::Units units(units_, wanted);
  Buffers symbols;
  const SymbolSet target = SymbolSet{1} << part.symbol;
  const Result<SymbolSet> sources = co_await read_word(part.rows, target, symbols, token);
  if (!sources) co_return fail(sources.error());
  if (Result<void> room = make_room(symbols[part.symbol], part.rows.count); !room) co_return room;
  code_.make(*sources, target, pointers(symbols), symbols[part.symbol].size());
  ++computed_;
  Pieces pieces;
  pieces.add(memory, part.offset, symbols[part.symbol].size());
  co_return deliver(symbols[part.symbol].bytes(), part.request.kind, pieces.all());
}

task::Task<Result<SymbolSet>> ParityDrive::read_word(RowSpan rows, SymbolSet avoid, Buffers& into,
                                                     task::CancelToken token) {
  Result<void> failure = fail(Errc::kUnreachable, "more legs are lost than parity can replace");
  SymbolSet have = 0;
  for (;;) {
    auto lack = static_cast<size_t>(std::popcount(code_.data_set()) - std::popcount(have));
    if (lack == 0) co_return have;
    SymbolSet can = symbols_on(rows.first, legs_in(State::kGood) & ~doubtful_) & ~avoid;
    SymbolSet ask = 0;
    for (; lack > 0 && can != 0; --lack) {
      ask |= can & -can;
      can &= can - 1;
    }
    if (lack > 0) co_return fail(failure.error());
    avoid |= ask;
    const Outcome outcome = co_await read_symbols(rows, ask, into, token);
    have |= outcome.done;
    if (token.requested()) co_return fail(token.error());
    if (!outcome.other) co_return fail(outcome.other.error());
    if (!outcome.failure) failure = outcome.failure;
  }
}

task::Task<ParityDrive::Outcome> ParityDrive::read_symbols(RowSpan rows, SymbolSet symbols,
                                                           Buffers& into, task::CancelToken token) {
  Outcome outcome;
  Join join;
  for (size_t symbol = 0; symbol < layout_.legs; ++symbol) {
    if ((symbols >> symbol & 1) == 0) continue;
    if (Result<void> room = make_room(into[symbol], rows.count); !room) {
      outcome.other = room;
      break;
    }
    join.add();
    gate().spawn(read_symbol(rows, symbol, into[symbol].bytes(), token, outcome, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // judged symbol by symbol
  co_return outcome;
}

task::Task<void> ParityDrive::read_symbol(RowSpan rows, size_t symbol, MutableBytes into,
                                          task::CancelToken token, Outcome& outcome, Join& join) {
  const size_t leg = layout_.leg_of(rows.first, symbol);
  const Result<void> answer =
      co_await legs_[leg].drive->read(Lba(label().data_offset() + rows.first), into, token);
  const Result<void> done = believed(leg, answer);
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

// The blocks could be computed: written again, most media give them back.
task::Task<void> ParityDrive::write_back(RowSpan rows, size_t symbol) {
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, rows.first, rows.count, closing_.token());
  const Result<void> held = co_await hold;
  if (!held) co_return;
  const size_t leg = layout_.leg_of(rows.first, symbol);
  const SymbolSet target = SymbolSet{1} << symbol;
  for (uint64_t row = rows.first; row < rows.end();) {
    const RowSpan slice = slice_at(row, rows.end());
    Buffers symbols;
    const Result<SymbolSet> sources = co_await read_word(slice, target, symbols, closing_.token());
    if (!sources || !make_room(symbols[symbol], slice.count)) co_return;
    if (legs_[leg].state != State::kGood) co_return;
    code_.make(*sources, target, pointers(symbols), symbols[symbol].size());
    const Result<void> mended = co_await mend(slice, symbol, symbols[symbol].bytes());
    if (!mended) co_return;
    row = slice.end();
  }
}

task::Task<Result<void>> ParityDrive::mend(RowSpan rows, size_t symbol, MutableBytes content) {
  const Request request{.kind = Request::Kind::kWrite,
                        .lba = Lba(label().data_offset() + rows.first),
                        .blocks = rows.count};
  Outcome outcome;
  Join join;
  join.add();
  co_await submit_to(layout_.leg_of(rows.first, symbol), request, {&content, 1}, outcome, join);
  const Result<void> judged = co_await judge(outcome);
  if (!judged) co_return judged;
  if (outcome.done == 0) co_return outcome.failure;
  mended_ += rows.count;
  co_return Result<void>();
}

Result<void> ParityDrive::make_room(Scratch& buffer, uint64_t rows) {
  if (!buffer.empty()) return {};
  Result<Scratch> made = Scratch::make(env_, rows * geometry_.block_size);
  if (!made) return fail(made.error());
  buffer = std::move(*made);
  return {};
}

std::array<std::byte*, kSymbolsMax> ParityDrive::pointers(const Buffers& buffers) const {
  std::array<std::byte*, kSymbolsMax> all{};
  for (size_t i = 0; i < buffers.size(); ++i) all[i] = buffers[i].data();
  return all;
}

}  // namespace cairn::drive
