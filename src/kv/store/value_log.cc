// SPDX-License-Identifier: Apache-2.0
#include "kv/store/value_log.h"

#include <algorithm>
#include <utility>

#include "base/units.h"

namespace cairn::kv::store {

using drive::Scratch;
using task::Task;

namespace {

// Written at once at most: a few records of the largest kind.
constexpr size_t kStageBytes = 256_KiB;
static_assert(kStageBytes >= 2 * kRecordBytesMax + 65536 + kRecordHeaderBytes);

}  // namespace

Task<Result<ValueWindow>> read_values(env::Env& env, BlockIo& io, const Layout& layout,
                                      uint64_t position, size_t bytes) {
  const uint64_t begin = position % layout.value_units * kUnitBytes;
  const uint64_t end = std::min(begin + bytes, layout.value_units * kUnitBytes);
  const uint64_t first = align_down(begin, layout.block_bytes);
  Result<Scratch> memory = Scratch::make(env, align_up(end, layout.block_bytes) - first);
  if (!memory) co_return fail(memory.error());
  const Result<void> read =
      co_await io.read(layout.value_block + first / layout.block_bytes, memory->bytes());
  if (!read) co_return fail(read.error());
  const Bytes inside = memory->subspan(begin - first, end - begin);
  co_return ValueWindow{.memory = std::move(*memory), .bytes = inside};
}

Task<Result<std::unique_ptr<ValueLog>>> ValueLog::open(Parts parts) {
  Result<Scratch> stage = Scratch::make(parts.env, kStageBytes);
  if (!stage) co_return fail(stage.error());
  Result<Scratch> tail_block = Scratch::make(parts.env, parts.layout.block_bytes);
  if (!tail_block) co_return fail(tail_block.error());
  const uint64_t place = parts.space.place_of(parts.space.tail());
  if (place % parts.layout.units_in_block() != 0) {
    const Result<void> read = co_await parts.io.read(
        parts.layout.value_block + place / parts.layout.units_in_block(), tail_block->bytes());
    if (!read) co_return fail(read.error());
  }
  co_return std::make_unique<ValueLog>(parts, std::move(*stage), std::move(*tail_block));
}

void ValueLog::Append::start() {
  log_.queue_.push_back(*this);
  if (std::exchange(log_.is_writing_, true)) return;
  log_.gate_.spawn(log_.pump());
}

// As many waiting records as the stage holds, behind what the tail's block has already.
void ValueLog::fill(Batch& batch) {
  LogSpace& space = parts_.space;
  batch.used = tail_offset();
  std::ranges::copy(tail_block_.first(batch.used), stage_.data());
  while (Append* next = queue_.front()) {
    const uint64_t position = space.tail() + batch.units;
    const uint64_t units = next->header_.units();
    const uint64_t lap_left = space.lap_left(position);
    if (units > lap_left) {
      encode_skip(parts_.id, position, stage_.subspan(batch.used, kUnitBytes));
      batch.used += kUnitBytes;
      batch.skipped = lap_left;
      return;
    }
    const size_t bytes = units * kUnitBytes;
    if (align_up(batch.used + bytes + kUnitBytes, parts_.layout.block_bytes) > stage_.size()) {
      return;
    }
    encode_record(parts_.id, position, next->header_, next->key_, next->value_,
                  stage_.subspan(batch.used, bytes));
    batch.used += bytes;
    batch.units += units;
    batch.is_durable |= next->is_durable_;
    queue_.pop_front();
    batch.appends.push_back(*next);
    if (units == lap_left) return;  // the next one begins a lap
  }
}

Task<Result<void>> ValueLog::write(const Batch& batch, uint64_t from) {
  const MutableBytes bytes = stage_.first(align_up(batch.used, parts_.layout.block_bytes));
  std::ranges::fill(bytes.subspan(batch.used), std::byte{0});
  const uint64_t block = parts_.space.place_of(from) / parts_.layout.units_in_block();
  return parts_.io.write(parts_.layout.value_block + block, bytes, batch.is_durable);
}

void ValueLog::finish(Batch& batch, const Result<void>& written) {
  LogSpace& space = parts_.space;
  uint64_t position = space.tail();
  if (written) {
    const size_t last = align_down(batch.used, parts_.layout.block_bytes);
    std::ranges::copy(stage_.subspan(last, batch.used - last), tail_block_.data());
    space.append(batch.units);
    if (batch.skipped > 0) space.skip(batch.skipped);
  }
  while (Append* done = batch.appends.pop_front()) {
    const uint64_t units = done->header_.units();
    if (written) {
      done->complete(position);
    } else {
      done->complete(fail(written.error()));
    }
    position += units;
  }
}

Task<void> ValueLog::pump() {
  while (!queue_.empty()) {
    Batch batch;
    fill(batch);
    const Result<void> written = co_await write(batch, parts_.space.tail());
    if (!written && batch.appends.empty()) batch.appends.push_back(*queue_.pop_front());
    finish(batch, written);
  }
  is_writing_ = false;
}

Task<Result<ValueLog::Stored>> ValueLog::read(uint64_t position, size_t bytes) const {
  Result<ValueWindow> window = co_await read_raw(position, bytes);
  if (!window) co_return fail(window.error());
  const std::optional<Record> record = decode_record(parts_.id, position, window->bytes);
  if (!record) co_return fail(Errc::kCorrupt, "a record of the value log is damaged");
  co_return Stored{.window = std::move(*window), .record = *record};
}

}  // namespace cairn::kv::store
