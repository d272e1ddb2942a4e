// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "drive/pieces.h"

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

// While logs are replayed because too many legs were restarted, blocks cannot be had: one attempt
// is waited for.
task::Task<Result<void>> ParityReader::read(DriveOp& op) {
  const Result<void> done = co_await read_blocks(op.request, op.data(), false, op.token());
  if (done || legs_.doubts() == 0 || !blames_leg(done.error())) co_return done;
  if (op.token().requested()) co_return done;
  const Result<void> waited = co_await log_.recovery_tried().wait(op.token());
  if (!waited) co_return waited;
  co_return co_await read_blocks(op.request, op.data(), false, op.token());
}

task::Task<Result<void>> ParityReader::read_blocks(const Request& request, Memory memory,
                                                   bool is_alone, task::CancelToken token) {
  const ParityLayout::SymbolPosition position = context_.shape.layout.locate(request.lba.value());
  if (request.blocks > position.run) return read_chunks(request, memory, is_alone, token);
  const Part part{
      .request = request, .rows = {position.row, request.blocks}, .symbol = position.symbol};
  return read_chunk(part, memory, is_alone, token);
}

task::Task<Result<void>> ParityReader::read_chunks(Request request, Memory memory, bool is_alone,
                                                   task::CancelToken token) {
  Join join;
  for (uint64_t done = 0; done < request.blocks;) {
    const ParityLayout::SymbolPosition position =
        context_.shape.layout.locate(request.lba.value() + done);
    const uint64_t run = std::min(position.run, request.blocks - done);
    const Part part{.request = request,
                    .rows = {position.row, run},
                    .symbol = position.symbol,
                    .offset = done * context_.shape.block_size};
    join.add();
    context_.gate.spawn(read_part(part, memory, is_alone, token, join));
    done += run;
  }
  co_return co_await join.all();
}

task::Task<void> ParityReader::read_part(Part part, Memory memory, bool is_alone,
                                         task::CancelToken token, Join& join) {
  const Result<void> done = co_await read_chunk(part, memory, is_alone, token);
  join.finish(done);
}

task::Task<Result<void>> ParityReader::read_chunk(Part part, Memory memory, bool is_alone,
                                                  task::CancelToken token) {
  std::optional<RowHold> hold;
  if (leftover_ > 0 && !is_alone) {
    const Result<void> held = co_await rows_.take(hold, Ranges::Mode::kShared, part.rows, token);
    if (!held) co_return held;
    is_alone = true;
  }
  const size_t index = context_.shape.layout.leg_of(part.rows.first, part.symbol);
  const size_t copy = std::exchange(part.request.copy, 0);
  part.request.durable = false;
  bool has_failed = false;
  if (copy != 2 && legs_.is_trusted(index)) {
    part.request.lba = context_.shape.lba(part.rows.first);
    part.request.blocks = part.rows.count;
    Pieces pieces;
    pieces.add(memory, part.offset, part.rows.count * context_.shape.block_size);
    const Result<void> answer =
        co_await legs_[index].drive->submit(part.request, pieces.all(), {}, token);
    const Result<void> done = legs_.believed(index, answer);
    if (done || copy == 1 || token.requested() || !blames_leg(done.error())) co_return done;
    has_failed = true;
  } else if (copy == 1) {
    co_return fail(Errc::kUnreachable, "the leg that has this block is lost");
  }
  const Result<void> done = co_await compute(part, memory, is_alone, token);
  const bool is_back = !has_failed && copy == 0 && legs_.is_trusted(index);
  if (!done && is_back && done.error() == Errc::kUnreachable && !token.requested()) {
    // It got all it lacked while this waited, and another one was lost that was to replace it.
    co_return co_await read_chunk(part, memory, is_alone, token);
  }
  if (done && has_failed) rows_.restore(part.rows, part.symbol);
  co_return done;
}

task::Task<Result<void>> ParityReader::compute(Part part, Memory memory, bool is_alone,
                                               task::CancelToken token) {
  const RowSpan rows = part.rows;
  for (uint64_t row = rows.first; row < rows.end(); row += part.rows.count) {
    part.rows = context_.shape.slice_at(row, rows.end());
    const Result<void> done = co_await compute_slice(part, memory, is_alone, token);
    if (!done) co_return done;
    part.offset += part.rows.count * context_.shape.block_size;
  }
  co_return Result<void>();
}

task::Task<Result<void>> ParityReader::compute_slice(Part part, Memory memory, bool is_alone,
                                                     task::CancelToken token) {
  std::optional<RowHold> hold;
  if (!is_alone) {
    const Result<void> held = co_await rows_.take(hold, Ranges::Mode::kShared, part.rows, token);
    if (!held) co_return held;
  }
  const uint64_t wanted = log_.units_of(part.rows.count);
  const Result<void> got = co_await log_.memory().acquire(wanted, token);
  if (!got) co_return got;
  const task::Units units(log_.memory(), wanted);
  ParityBuffers symbols;
  const SymbolSet target = SymbolSet{1} << part.symbol;
  const Result<SymbolSet> sources = co_await rows_.read_word(part.rows, target, symbols, token);
  if (!sources) co_return fail(sources.error());
  const Result<void> room = rows_.make_room(symbols[part.symbol], part.rows.count);
  if (!room) co_return room;
  rows_.compute(*sources, target, symbols, symbols[part.symbol].size());
  rows_.count_computed();
  Pieces pieces;
  pieces.add(memory, part.offset, symbols[part.symbol].size());
  co_return deliver(symbols[part.symbol].bytes(), part.request.kind, pieces.all());
}

}  // namespace cairn::drive
