// SPDX-License-Identifier: Apache-2.0
#include "kv/store/key_log.h"

#include <algorithm>

#include "base/units.h"

namespace cairn::kv::store {

using drive::Scratch;
using task::Task;

namespace {

constexpr size_t kStageBytes = 256_KiB;  // of a batch of many commits; one alone may have more

}  // namespace

Result<std::unique_ptr<KeyLog>> KeyLog::open(const Parts& parts) {
  Result<Scratch> stage = Scratch::make(parts.env, kStageBytes);
  if (!stage) return fail(stage.error());
  return std::make_unique<KeyLog>(parts, std::move(*stage));
}

uint64_t KeyLog::buckets_of_all(std::span<const SegmentWrite> writes) const {
  uint64_t sum = 0;
  for (const SegmentWrite& write : writes) {
    sum += buckets_of(write.items.size(), parts_.layout.block_bytes);
  }
  return sum;
}

void KeyLog::Commit::start() {
  log_.queue_.push_back(*this);
  if (std::exchange(log_.is_writing_, true)) return;
  log_.gate_.spawn(log_.pump());
}

uint16_t KeyLog::unstable_at(uint64_t position) const {
  return static_cast<uint16_t>(std::min<uint64_t>(position - stable_, kUnstableUnknown));
}

// As many waiting commits as fit before the end of the lap and into the stage; the first fits.
void KeyLog::fill(Batch& batch) {
  const LogSpace& space = parts_.space;
  const uint64_t room = std::min(
      {space.lap_left(space.tail()), kBatchBucketsMax, stage_.size() / parts_.layout.block_bytes});
  batch.position = space.tail();
  batch.is_durable = true;
  batch.losses = UINT64_MAX;
  while (Commit* next = queue_.front()) {
    if (!batch.commits.empty() && batch.buckets + next->buckets_ > room) return;
    batch.buckets += next->buckets_;
    batch.is_durable &= next->values_.are_durable;
    batch.losses = std::min(batch.losses, next->values_.losses);
    queue_.pop_front();
    batch.commits.push_back(*next);
  }
}

size_t KeyLog::encode_segment(const SegmentWrite& write, BucketHeader& header, uint64_t position,
                              MutableBytes to) const {
  const size_t bucket_bytes = parts_.layout.block_bytes;
  const size_t each = items_in_bucket(bucket_bytes);
  const size_t length = buckets_of(write.items.size(), bucket_bytes);
  header.segment = write.segment;
  header.chain_length = static_cast<uint8_t>(length);
  header.key_delta = write.key_delta;
  header.unit_delta = write.unit_delta;
  std::span<const Item> items = write.items;
  for (size_t i = 0; i < length; ++i) {
    const std::span<const Item> here = items.first(std::min(each, items.size()));
    header.chain_index = static_cast<uint8_t>(i);
    header.items = static_cast<uint16_t>(here.size());
    encode_bucket(parts_.id, position + i, header, here,
                  to.subspan(i * bucket_bytes, bucket_bytes));
    items = items.subspan(here.size());
    header.starts_batch = false;
    --header.batch_left;
  }
  return length;
}

void KeyLog::encode(Batch& batch, MutableBytes to) {
  BucketHeader header{.epoch = parts_.epoch,
                      .starts_batch = true,
                      .batch_left = static_cast<uint16_t>(batch.buckets),
                      .unstable = unstable_at(batch.position),
                      .value_head = parts_.values.head()};
  uint64_t position = batch.position;
  batch.commits.for_each([&](const Commit& commit) {
    for (const SegmentWrite& write : commit.writes_) {
      const size_t length = encode_segment(write, header, position, to);
      position += length;
      to = to.subspan(length * parts_.layout.block_bytes);
    }
  });
}

// What is left of this lap is too little: one bucket says so. It counts with the batch: after a
// failure both are written again.
Task<Result<void>> KeyLog::end_lap(Batch& batch) {
  const LogSpace& space = parts_.space;
  const uint64_t position = batch.position;
  const BucketHeader header{.epoch = parts_.epoch,
                            .starts_batch = true,
                            .batch_left = 1,
                            .unstable = unstable_at(position),
                            .chain_length = 1,
                            .value_head = parts_.values.head()};
  const MutableBytes bucket = stage_.first(parts_.layout.block_bytes);
  encode_bucket(parts_.id, position, header, {}, bucket);
  batch.skipped = space.lap_left(position);
  batch.position += batch.skipped;
  return parts_.io.write(parts_.layout.key_block + space.place_of(position), bucket,
                         batch.is_durable);
}

Task<Result<void>> KeyLog::run(Batch& batch) {
  const LogSpace& space = parts_.space;
  if (batch.buckets > space.lap_left(batch.position)) {
    const Result<void> ended = co_await end_lap(batch);
    if (!ended) co_return ended;
  }
  MutableBytes bytes = stage_.bytes();
  Scratch larger;
  const size_t size = batch.buckets * parts_.layout.block_bytes;
  if (size > stage_.size()) {
    Result<Scratch> memory = Scratch::make(parts_.env, size);
    if (!memory) co_return fail(memory.error());
    larger = std::move(*memory);
    bytes = larger.bytes();
  }
  encode(batch, bytes.first(size));
  Result<void> done =
      co_await parts_.io.write(parts_.layout.key_block + space.place_of(batch.position),
                               bytes.first(size), batch.is_durable);
  if (done && parts_.syncer.is_needed() && !batch.is_durable) done = co_await parts_.syncer.flush();
  if (done && !batch.is_durable && batch.losses != parts_.syncer.losses()) {
    done = fail(Errc::kIo, "the drive lost values before they were committed");
  }
  co_return done;
}

void KeyLog::publish(const Batch& batch) {
  LogSpace& space = parts_.space;
  if (batch.skipped > 0) space.skip(batch.skipped);
  uint64_t position = batch.position;
  const_cast<Batch&>(batch).commits.for_each([&](const Commit& commit) {
    for (const SegmentWrite& write : commit.writes_) {
      const size_t length = buckets_of(write.items.size(), parts_.layout.block_bytes);
      SegmentTable::Chain chain;
      if (!write.items.empty()) {
        chain = {.length = static_cast<uint8_t>(length),
                 .place = static_cast<uint32_t>(space.place_of(position))};
      }
      parts_.table.set(write.segment, chain);
      parts_.totals.keys += static_cast<uint64_t>(int64_t{write.key_delta});
      parts_.totals.live_units += static_cast<uint64_t>(int64_t{write.unit_delta});
      position += length;
    }
  });
  space.append(batch.buckets);
}

void KeyLog::finish(Batch& batch, const Result<void>& done) {
  if (done) {
    publish(batch);
    if (parts_.syncer.mode() == Durability::kCommit) stable_ = parts_.space.tail();
  }
  while (Commit* commit = batch.commits.pop_front()) commit->complete(done);
}

Task<void> KeyLog::pump() {
  while (!queue_.empty()) {
    Batch batch;
    fill(batch);
    const Time began = parts_.syncer.now();
    Result<void> done;
    if (stopped_) {
      done = fail(*stopped_);
    } else {
      done = co_await run(batch);
      if (done && parts_.syncer.is_needed()) {
        parts_.syncer.took(batch.is_durable, parts_.syncer.now() - began);
      }
    }
    finish(batch, done);
  }
  is_writing_ = false;
}

Task<Result<KeyLog::Chain>> KeyLog::read(uint32_t segment, SegmentTable::Chain chain) const {
  if (chain.is_damaged()) co_return fail(Errc::kCorrupt, "a segment of the key log is damaged");
  if (chain.length == 0) co_return Chain();
  const size_t bucket_bytes = parts_.layout.block_bytes;
  // What it was when it was read is what counts: the tail may move on meanwhile.
  const uint64_t position = parts_.space.position_of(chain.place);
  Result<Scratch> memory = Scratch::make(parts_.env, chain.length * bucket_bytes);
  if (!memory) co_return fail(memory.error());
  const Result<void> read =
      co_await parts_.io.read(parts_.layout.key_block + chain.place, memory->bytes());
  if (!read) co_return fail(read.error());
  const Bytes buckets = memory->bytes();
  const Result<void> checked = check_chain(parts_.id, position, segment, buckets, bucket_bytes);
  if (!checked) co_return fail(checked.error());
  co_return Chain{.memory = std::move(*memory), .buckets = buckets};
}

Task<Result<void>> KeyLog::sync() {
  const uint64_t tail = parts_.space.tail();
  const Result<void> done = co_await parts_.syncer.flush();
  if (done) {
    stable_ = std::max(stable_, tail);
  } else if (parts_.syncer.mode() != Durability::kCommit) {
    stop(done.error());
  }
  co_return done;
}

}  // namespace cairn::kv::store
