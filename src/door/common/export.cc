// SPDX-License-Identifier: Apache-2.0
#include "door/common/export.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace cairn::door {

using drive::Ranges;
using drive::Request;

namespace {

// Another writer got in between so often: it is no coincidence.
constexpr int kTriesMax = 1000;

}  // namespace

BlockSpan Export::span_of(uint64_t offset, uint64_t length) const {
  const uint64_t block = block_size();
  const uint64_t begin = align_down(offset, block);
  const uint64_t end = align_up(offset + length, block);
  return {.first = Lba(begin / block),
          .blocks = (end - begin) / block,
          .bytes = end - begin,
          .head = offset - begin,
          .whole = begin == offset && end == offset + length};
}

size_t Export::piece_of(uint64_t offset, uint64_t length) const {
  const drive::Geometry& shape = drive_->geometry();
  const uint64_t max =
      std::min<uint64_t>(kPieceMax, uint64_t{shape.transfer_blocks} * shape.block_size);
  return std::min(length, align_down(offset, shape.block_size) + max - offset);
}

task::Task<Result<void>> Export::transfer(Request request, MutableBytes data) {
  const MutableBytes pieces[] = {data};
  const std::optional<Result<void>> now = drive_->try_now(request, pieces);
  if (now) co_return *now;
  const Result<void> done = co_await drive_->submit(request, pieces);
  co_return done;
}

task::Task<Result<void>> Export::read(BlockSpan span, MutableBytes into) {
  return transfer({.kind = Request::Kind::kRead, .lba = span.first, .blocks = span.blocks}, into);
}

task::Task<Result<void>> Export::write(BlockSpan span, MutableBytes room, size_t length,
                                       bool durable) {
  if (!span.whole) {
    const Result<void> done = co_await write_part(span, room, length, durable);
    co_return done;
  }
  Ranges::Hold hold(ranges_.on(env_.core()), Ranges::Mode::kShared, span.first.value(),
                    span.blocks);
  const Result<void> held = co_await hold;
  if (!held) co_return held;
  const Result<void> done = co_await transfer(
      {.kind = Request::Kind::kWrite, .durable = durable, .lba = span.first, .blocks = span.blocks},
      room.first(span.bytes));
  co_return done;
}

task::Task<Result<void>> Export::write_part(BlockSpan span, MutableBytes room, size_t length,
                                            bool durable) {
  drive::SharedRanges::Alone alone(ranges_, span.first.value(), span.blocks);
  co_await alone.enter(env_);
  Result<void> done;
  if (options_.has_other_writers) {
    done = co_await write_among_others(span, room, length, durable);
  } else {
    done = co_await fill_edges(span, room, length);
    if (done) {
      done = co_await transfer({.kind = Request::Kind::kWrite,
                                .durable = durable,
                                .lba = span.first,
                                .blocks = span.blocks},
                               room.first(span.bytes));
    }
  }
  co_await alone.leave(env_);
  co_return done;
}

// Whole blocks as they are, then those at the edges.
task::Task<Result<void>> Export::write_among_others(BlockSpan span, MutableBytes room,
                                                    size_t length, bool durable) {
  const uint64_t block = block_size();
  const bool has_tail = span.head + length < span.bytes;
  const uint64_t first = span.head > 0 ? 1 : 0;
  const uint64_t last = has_tail ? span.blocks - 1 : span.blocks;
  Result<void> done;
  if (first < last) {
    done = co_await transfer({.kind = Request::Kind::kWrite,
                              .durable = durable,
                              .lba = Lba(span.first.value() + first),
                              .blocks = last - first},
                             room.subspan(first * block, (last - first) * block));
  }
  if (done && first == 1) done = co_await write_edge(span, room, length, 0, durable);
  const bool is_written = first == 1 && span.blocks == 1;
  if (done && has_tail && !is_written) {
    done = co_await write_edge(span, room, length, span.blocks - 1, durable);
  }
  co_return done;
}

// Block `index` of the span, with our part in it, unless it is another block by then.
task::Task<Result<void>> Export::write_edge(BlockSpan span, MutableBytes room, size_t length,
                                            uint64_t index, bool durable) {
  const size_t block = block_size();
  const Lba lba(span.first.value() + index);
  const MutableBytes old[] = {room.subspan(span.bytes, block)};
  const MutableBytes fresh[] = {room.subspan(index * block, block)};
  const size_t begin = index == 0 ? span.head : 0;
  const size_t end = std::min(block, span.head + length - index * block);
  const Request swap{
      .kind = Request::Kind::kCompareAndWrite, .durable = durable, .lba = lba, .blocks = 1};
  for (int tries = 0; tries < kTriesMax; ++tries) {
    Result<void> done =
        co_await transfer({.kind = Request::Kind::kRead, .lba = lba, .blocks = 1}, old[0]);
    if (!done) co_return done;
    std::memcpy(fresh[0].data(), old[0].data(), begin);
    std::memcpy(fresh[0].data() + end, old[0].data() + end, block - end);
    done = co_await drive_->submit(swap, old, fresh);
    if (done || done.error() != Errc::kMismatch) co_return done;
  }
  co_return fail(Errc::kIo, "a part of a block, which others keep changing");
}

// What stands in the first and in the last block around the range.
task::Task<Result<void>> Export::fill_edges(BlockSpan span, MutableBytes room, size_t length) {
  const size_t block = block_size();
  const MutableBytes scratch = room.subspan(span.bytes, block);
  const size_t end = span.head + length;
  const Lba last(span.first.value() + span.blocks - 1);
  const bool has_tail = end < span.bytes;
  if (span.head > 0) {
    const Result<void> got =
        co_await transfer({.kind = Request::Kind::kRead, .lba = span.first, .blocks = 1}, scratch);
    if (!got) co_return got;
    std::memcpy(room.data(), scratch.data(), span.head);
  }
  if (has_tail) {
    if (span.head == 0 || span.blocks > 1) {
      const Result<void> got =
          co_await transfer({.kind = Request::Kind::kRead, .lba = last, .blocks = 1}, scratch);
      if (!got) co_return got;
    }
    const size_t kept = span.bytes - end;
    std::memcpy(room.data() + end, scratch.data() + block - kept, kept);
  }
  co_return Result<void>{};
}

task::Task<Result<void>> Export::write_zeroes(uint64_t offset, uint64_t length, ZeroOptions options,
                                              stream::BufferQueue& buffers) {
  const uint64_t block = block_size();
  const uint64_t end = offset + length;
  const uint64_t first = std::min(align_up(offset, block), end);
  const uint64_t last = std::max(align_down(end, block), first);
  Result<void> done;
  // The middle first: it is what may be refused.
  if (first < last) {
    done = co_await zero_blocks(Lba(first / block), (last - first) / block, options, buffers);
  }
  if (done && offset < first) {
    done = co_await zero_part(offset, first - offset, options.durable, buffers);
  }
  if (done && last < end) done = co_await zero_part(last, end - last, options.durable, buffers);
  co_return done;
}

task::Task<Result<void>> Export::zero_part(uint64_t offset, size_t length, bool durable,
                                           stream::BufferQueue& buffers) {
  const BlockSpan span = span_of(offset, length);
  Result<void> done;
  {
    Result<Buffer> room = co_await buffers.allocate(room_of(span), kBufferTimeout, {});
    if (!room) co_return fail(room.error());
    std::memset(room->data() + span.head, 0, length);
    done = co_await write(span, room->bytes(), length, durable);
  }
  buffers.released();
  co_return done;
}

task::Task<Result<void>> Export::zero_blocks(Lba first, uint64_t blocks, ZeroOptions options,
                                             stream::BufferQueue& buffers) {
  Ranges::Hold hold(ranges_.on(env_.core()), Ranges::Mode::kShared, first.value(), blocks);
  const Result<void> held = co_await hold;
  if (!held) co_return held;
  const Request request{.kind = Request::Kind::kWriteZeroes,
                        .durable = options.durable,
                        .keep_space = options.keep_space,
                        .lba = first,
                        .blocks = blocks};
  Result<void> done = co_await drive_->submit(request, {});
  if (!done && done.error() == Errc::kUnsupported && !options.fast) {
    done = co_await write_zero_blocks(first, blocks, options.durable, buffers);
  }
  co_return done;
}

task::Task<Result<void>> Export::write_zero_blocks(Lba first, uint64_t blocks, bool durable,
                                                   stream::BufferQueue& buffers) {
  const uint64_t max = piece_of(0, UINT64_MAX) / block_size();
  Result<void> done;
  {
    Result<Buffer> room =
        co_await buffers.allocate(std::min(blocks, max) * block_size(), kBufferTimeout, {});
    if (!room) co_return fail(room.error());
    std::memset(room->data(), 0, room->size());
    for (uint64_t at = 0; at < blocks && done;) {
      const uint64_t count = std::min(blocks - at, max);
      done = co_await transfer({.kind = Request::Kind::kWrite,
                                .durable = durable,
                                .lba = Lba(first.value() + at),
                                .blocks = count},
                               room->first(count * block_size()));
      at += count;
    }
  }
  buffers.released();
  co_return done;
}

task::Task<Result<void>> Export::trim(uint64_t offset, uint64_t length, bool durable) {
  const uint64_t block = block_size();
  const uint64_t first = align_up(offset, block) / block;
  const uint64_t last = (offset + length) / block;
  if (first >= last) co_return Result<void>{};
  Ranges::Hold hold(ranges_.on(env_.core()), Ranges::Mode::kShared, first, last - first);
  const Result<void> held = co_await hold;
  if (!held) co_return held;
  // Not a discard and a flush: one that fails tells that others' writes are lost, and would have
  // told it to a client that did not ask.
  const Request request{.kind = durable ? Request::Kind::kWriteZeroes : Request::Kind::kDiscard,
                        .durable = durable,
                        .lba = Lba(first),
                        .blocks = last - first};
  const Result<void> done = co_await drive_->submit(request, {});
  if (!done && done.error() == Errc::kUnsupported) co_return Result<void>{};
  co_return done;
}

task::Task<Result<void>> Export::flush() {
  const Result<void> done = co_await drive_->flush();
  co_return done;
}

}  // namespace cairn::door
