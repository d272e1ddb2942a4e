// SPDX-License-Identifier: Apache-2.0
#include "kv/store/log_scan.h"

#include <algorithm>
#include <utility>

#include "base/units.h"

namespace cairn::kv::store {

using drive::Scratch;
using task::Task;

namespace {

constexpr size_t kWindowBytes = 256_KiB;  // read ahead

}  // namespace

Task<Result<void>> LogScan::fill(uint64_t position, uint64_t count) {
  Result<Scratch> memory = Scratch::make(env_, count * layout_.block_bytes);
  if (!memory) co_return fail(memory.error());
  memory_ = std::move(*memory);
  loaded_ = position;
  const Result<void> read =
      co_await io_.read(layout_.key_block + position % layout_.key_buckets, memory_.bytes());
  if (!read) memory_ = Scratch();
  co_return read;
}

Task<Result<Bytes>> LogScan::load(uint64_t position, uint64_t count) {
  const size_t bucket_bytes = layout_.block_bytes;
  const bool is_there =
      position >= loaded_ && (position - loaded_ + count) * bucket_bytes <= memory_.size();
  if (!is_there) {
    const uint64_t lap_left = layout_.key_buckets - position % layout_.key_buckets;
    const uint64_t ahead = std::max<uint64_t>(kWindowBytes / bucket_bytes, count);
    Result<void> read = co_await fill(position, std::min(ahead, lap_left));
    // What cannot be read may lie behind what is wanted.
    if (!read && ahead > count) read = co_await fill(position, count);
    if (!read) co_return fail(read.error());
  }
  co_return memory_.subspan((position - loaded_) * bucket_bytes, count * bucket_bytes);
}

bool LogScan::is_batch(Bytes buckets, const BucketHeader& first) const {
  const size_t bucket_bytes = layout_.block_bytes;
  BucketHeader previous;
  previous.chain_length = 0;
  for (uint16_t i = 0; i < first.batch_left; ++i) {
    const Result<BucketHeader> header =
        decode_bucket(id_, end_ + i, buckets.subspan(i * bucket_bytes, bucket_bytes));
    if (!header || header->batch_left != first.batch_left - i || header->starts_batch != (i == 0) ||
        header->epoch != first.epoch) {
      return false;
    }
    const bool goes_on = i > 0 && previous.chain_index + 1 < previous.chain_length;
    if (goes_on ? header->chain_index != previous.chain_index + 1 ||
                      header->segment != previous.segment ||
                      header->chain_length != previous.chain_length
                : header->chain_index != 0) {
      return false;
    }
    previous = *header;
  }
  return previous.chain_index + 1 == previous.chain_length;
}

// False: there is none at the end.
Task<Result<bool>> LogScan::take_batch() {
  if (end_ >= limit_) co_return false;
  Result<Bytes> bytes = co_await load(end_, 1);
  if (!bytes) co_return fail(bytes.error());
  const Result<BucketHeader> first = decode_bucket(id_, end_, *bytes);
  if (!first || !first->starts_batch) co_return false;
  if (is_stale(end_, first->epoch)) co_return false;
  const uint64_t lap_left = layout_.key_buckets - end_ % layout_.key_buckets;
  const uint64_t count = first->batch_left;
  if (count > std::min(lap_left, limit_ - end_)) co_return false;
  bytes = co_await load(end_, count);
  if (!bytes) co_return fail(bytes.error());
  if (!is_batch(*bytes, *first)) co_return false;
  if (first->unstable != kUnstableUnknown) {
    stable_ = std::max(stable_, end_ - std::min<uint64_t>(first->unstable, end_));
  }
  batches_.push_back({.position = end_, .buckets = count, .value_head = first->value_head});
  end_ += first->segment == kNoSegment ? lap_left : count;
  co_return true;
}

// Whether something was written later that says that the end was durable.
Task<Result<void>> LogScan::look_beyond() {
  const uint64_t beyond = 2 * kWindowBytes / layout_.block_bytes;
  for (uint64_t position = end_ + 1; position < std::min(end_ + beyond, limit_); ++position) {
    const Result<Bytes> bucket = co_await load(position, 1);
    if (!bucket && bucket.error() == Errc::kIo) continue;
    if (!bucket) co_return fail(bucket.error());
    const Result<BucketHeader> header = decode_bucket(id_, position, *bucket);
    if (!header || !header->starts_batch || header->unstable == kUnstableUnknown) continue;
    if (is_stale(position, header->epoch)) continue;
    if (position - header->unstable > end_) {
      co_return fail(Errc::kCorrupt, "the key log is damaged before its end");
    }
  }
  co_return Result<void>();
}

Task<Result<void>> LogScan::run() {
  while (true) {
    const Result<bool> taken = co_await take_batch();
    if (!taken) co_return fail(taken.error());
    if (!*taken) break;
  }
  Result<void> looked = co_await look_beyond();
  co_return looked;
}

Task<Result<Bytes>> LogScan::read(const Batch& batch) {
  Result<Bytes> bytes = co_await load(batch.position, batch.buckets);
  co_return bytes;
}

}  // namespace cairn::kv::store
