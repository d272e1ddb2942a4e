// SPDX-License-Identifier: Apache-2.0
#include "door/nbd/export.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "door/nbd/wire_format.h"

namespace cairn::door {

using drive::Ranges;
using drive::Request;

uint16_t Export::flags() const {
  constexpr uint16_t kAlways = kHasFlags | kSendFlush | kSendFua | kCanMultiConn | kSendCache;
  if (options_.read_only) return kAlways | kReadOnly;
  return kAlways | kSendTrim | kSendWriteZeroes | kSendFastZero;
}

uint32_t Export::preferred_size() const {
  const drive::Geometry& shape = drive_->geometry();
  const uint64_t wanted = uint64_t{shape.block_size} * std::max(shape.optimal_blocks, 1u);
  const auto size = static_cast<uint32_t>(std::min<uint64_t>(wanted, kPayloadMax));
  return std::max(std::bit_floor(size), 4096u);
}

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
  const uint64_t most =
      std::min<uint64_t>(kPieceMax, uint64_t{shape.transfer_blocks} * shape.block_size);
  return std::min(length, align_down(offset, shape.block_size) + most - offset);
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
  Result<void> done = co_await fill_edges(span, room, length);
  if (done) {
    done = co_await transfer({.kind = Request::Kind::kWrite,
                              .durable = durable,
                              .lba = span.first,
                              .blocks = span.blocks},
                             room.first(span.bytes));
  }
  co_await alone.leave(env_);
  co_return done;
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
                                              fabric::BufferQueue& buffers) {
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
                                           fabric::BufferQueue& buffers) {
  const BlockSpan span = span_of(offset, length);
  Result<void> done;
  {
    Result<Buffer> room = co_await buffers.allocate(room_of(span), {});
    if (!room) co_return fail(room.error());
    std::memset(room->data() + span.head, 0, length);
    done = co_await write(span, room->bytes(), length, durable);
  }
  buffers.released();
  co_return done;
}

task::Task<Result<void>> Export::zero_blocks(Lba first, uint64_t blocks, ZeroOptions options,
                                             fabric::BufferQueue& buffers) {
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
                                                   fabric::BufferQueue& buffers) {
  const uint64_t most = piece_of(0, UINT64_MAX) / block_size();
  Result<void> done;
  {
    Result<Buffer> room =
        co_await buffers.allocate(std::min(blocks, most) * block_size(), task::CancelToken{});
    if (!room) co_return fail(room.error());
    std::memset(room->data(), 0, room->size());
    for (uint64_t at = 0; at < blocks && done;) {
      const uint64_t count = std::min(blocks - at, most);
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
  Result<void> done = co_await drive_->discard(Lba(first), last - first);
  if (!done && done.error() == Errc::kUnsupported) co_return Result<void>{};
  if (done && durable) done = co_await drive_->flush();
  co_return done;
}

task::Task<Result<void>> Export::flush() {
  const Result<void> done = co_await drive_->flush();
  co_return done;
}

}  // namespace cairn::door
