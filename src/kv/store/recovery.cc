// SPDX-License-Identifier: Apache-2.0
#include "kv/store/recovery.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "drive/scratch.h"
#include "kv/store/log_scan.h"
#include "kv/store/value_log.h"
#include "task/when_all.h"

namespace cairn::kv::store {

using drive::Scratch;
using task::Task;

namespace {

constexpr size_t kStepBytes = 256_KiB;  // of the table, at a time
constexpr size_t kReadsMax = 32;        // of values at once

class Recovery {
 public:
  Recovery(env::Env& env, BlockIo& io, drive::Label label, const Superblock& superblock)
      : env_(env),
        io_(io),
        found_{.label = std::move(label),
               .superblock = superblock,
               .table = SegmentTable(superblock.layout.segments),
               .totals = {.keys = superblock.checkpoint.keys,
                          .live_units = superblock.checkpoint.live_units},
               .next_version = superblock.checkpoint.next_version,
               .values = {.head = superblock.checkpoint.value_head,
                          .tail = superblock.checkpoint.value_tail}} {}

  Task<Result<Recovered>> run();

 private:
  const Layout& layout() const { return found_.superblock.layout; }
  const Checkpoint& checkpoint() const { return found_.superblock.checkpoint; }
  Task<Result<void>> load_table();
  Task<Result<void>> replay(LogScan& scan);
  Task<Result<bool>> has_values(const LogScan::Batch& batch, Bytes buckets);
  Task<Result<bool>> has_value(uint64_t value_head, Item item);
  Result<void> apply(const LogScan::Batch& batch, Bytes buckets);
  void note_unsettled(uint64_t position, const ValueWindow& window) {
    const uint64_t place = position % layout().value_units;
    found_.unsettled.push_back({.first = layout().value_block + place / layout().units_in_block(),
                                .count = window.memory.size() / layout().block_bytes});
  }
  void find_key_head();
  uint64_t position_of(uint64_t value_head, uint64_t place) const {
    const uint64_t size = layout().value_units;
    return value_head + (place + size - value_head % size) % size;
  }

  env::Env& env_;
  BlockIo& io_;
  Recovered found_;
};

Task<Result<void>> Recovery::load_table() {
  if (checkpoint().number == 0) co_return Result<void>();
  const size_t page_size = page_bytes(layout().block_bytes);
  const uint64_t pages = pages_of(layout().segments);
  const uint64_t step = std::max<uint64_t>(kStepBytes / page_size, 1);
  Result<Scratch> memory = Scratch::make(env_, step * page_size);
  if (!memory) co_return fail(memory.error());
  const uint64_t area = layout().table_block + checkpoint().number % 2 * layout().table_blocks;
  for (uint64_t first = 0; first < pages; first += step) {
    const uint64_t count = std::min(step, pages - first);
    const Result<void> read = co_await io_.read(area + first * page_size / layout().block_bytes,
                                                memory->first(count * page_size));
    if (!read) co_return read;
    for (uint64_t i = 0; i < count; ++i) {
      const Result<Bytes> page =
          decode_page(found_.label.id, checkpoint().number, static_cast<uint32_t>(first + i),
                      memory->subspan(i * page_size, page_size));
      if (!page) co_return fail(page.error());
      if (!found_.table.load_page(first + i, *page, layout().key_buckets)) {
        co_return fail(Errc::kCorrupt, "the segment table's checkpoint makes no sense");
      }
    }
  }
  co_return Result<void>();
}

// Whether an item's record is there, with all its pieces.
Task<Result<bool>> Recovery::has_value(uint64_t value_head, Item item) {
  const bool in_pieces = is_in_pieces(item.key_bytes, item.value_bytes);
  const size_t inside = in_pieces ? pieces_of(item.value_bytes) * kPlaceBytes : item.value_bytes;
  const uint64_t position = position_of(value_head, item.place);
  const Result<ValueWindow> window = co_await read_values(
      env_, io_, layout(), position, kRecordHeaderBytes + item.key_bytes + inside);
  if (!window) co_return fail(window.error());
  const std::optional<Record> record = decode_record(found_.label.id, position, window->bytes);
  if (!record || record->header.version != item.version || record->value.size() != inside) {
    co_return false;
  }
  note_unsettled(position, *window);
  if (!in_pieces) co_return true;
  const std::optional<std::vector<uint64_t>> places =
      decode_places(record->value, item.value_bytes, layout().value_units);
  if (!places) co_return false;
  for (const uint64_t place : *places) {
    const uint64_t at = position_of(value_head, place);
    const Result<ValueWindow> piece =
        co_await read_values(env_, io_, layout(), at, kRecordBytesMax);
    if (!piece) co_return fail(piece.error());
    if (!decode_record(found_.label.id, at, piece->bytes)) co_return false;
    note_unsettled(at, *piece);
  }
  co_return true;
}

Task<Result<bool>> Recovery::has_values(const LogScan::Batch& batch, Bytes buckets) {
  std::vector<Item> fresh;
  for (uint64_t i = 0; i < batch.buckets; ++i) {
    const Bytes bucket = buckets.subspan(i * layout().block_bytes, layout().block_bytes);
    const size_t count = item_count_of_bucket(bucket);
    for (size_t n = 0; n < count; ++n) {
      const Item item = item_of_bucket(bucket, n);
      if (item.is_fresh) fresh.push_back(item);
    }
  }
  for (size_t begin = 0; begin < fresh.size(); begin += kReadsMax) {
    std::vector<Task<Result<bool>>> reading;
    for (size_t i = begin; i < std::min(begin + kReadsMax, fresh.size()); ++i) {
      reading.push_back(has_value(batch.value_head, fresh[i]));
    }
    const std::vector<Result<bool>> there = co_await task::when_all(std::move(reading));
    for (const Result<bool>& one : there) {
      if (!one || !*one) co_return one;
    }
  }
  co_return true;
}

Result<void> Recovery::apply(const LogScan::Batch& batch, Bytes buckets) {
  const size_t bucket_bytes = layout().block_bytes;
  found_.values.head = std::max(found_.values.head, batch.value_head);
  for (uint64_t i = 0; i < batch.buckets; ++i) {
    const Bytes bucket = buckets.subspan(i * bucket_bytes, bucket_bytes);
    const uint64_t position = batch.position + i;
    const Result<BucketHeader> header = decode_bucket(found_.label.id, position, bucket);
    if (!header) return fail(header.error());
    if (header->segment == kNoSegment) continue;
    if (header->segment >= layout().segments) {
      return fail(Errc::kCorrupt, "the key log names a segment that there is not");
    }
    for (size_t n = 0; n < header->items; ++n) {
      const Item item = item_of_bucket(bucket, n);
      found_.next_version = std::max(found_.next_version, item.version + 1);
      if (!item.is_fresh) continue;
      const bool in_pieces = is_in_pieces(item.key_bytes, item.value_bytes);
      const RecordHeader record{
          .key_bytes = item.key_bytes,
          .value_bytes = in_pieces
                             ? static_cast<uint32_t>(pieces_of(item.value_bytes) * kPlaceBytes)
                             : item.value_bytes};
      found_.values.tail =
          std::max(found_.values.tail, position_of(batch.value_head, item.place) + record.units());
    }
    if (header->chain_index != 0) continue;
    found_.totals.keys += static_cast<uint64_t>(int64_t{header->key_delta});
    found_.totals.live_units += static_cast<uint64_t>(int64_t{header->unit_delta});
    const bool is_empty = header->chain_length == 1 && header->items == 0;
    found_.table.set(
        header->segment,
        is_empty
            ? SegmentTable::Chain()
            : SegmentTable::Chain{.length = header->chain_length,
                                  .place = static_cast<uint32_t>(position % layout().key_buckets)});
  }
  return {};
}

// Applies what the scan has found, up to the first batch whose values are missing.
Task<Result<void>> Recovery::replay(LogScan& scan) {
  for (const LogScan::Batch& batch : scan.batches()) {
    const Result<Bytes> buckets = co_await scan.read(batch);
    if (!buckets) co_return fail(buckets.error());
    if (batch.position >= scan.stable()) {
      const Result<bool> there = co_await has_values(batch, *buckets);
      if (!there) co_return fail(there.error());
      if (!*there) {
        found_.keys.tail = batch.position;
        break;
      }
      found_.unsettled.push_back(
          {.first = layout().key_block + batch.position % layout().key_buckets,
           .count = batch.buckets});
    }
    const Result<void> applied = apply(batch, *buckets);
    if (!applied) co_return applied;
    found_.scanned += batch.buckets;
  }
  co_return Result<void>();
}

// The oldest chain that the table names.
void Recovery::find_key_head() {
  const uint64_t size = layout().key_buckets;
  const uint64_t last = found_.keys.tail - 1;
  uint64_t head = found_.keys.tail;
  for (uint64_t segment = 0; segment < found_.table.segments(); ++segment) {
    const SegmentTable::Chain chain = found_.table.at(static_cast<uint32_t>(segment));
    if (chain.length > 0) head = std::min(head, last - (last - chain.place) % size);
  }
  found_.keys.head = head;
}

Task<Result<Recovered>> Recovery::run() {
  Result<void> done = co_await load_table();
  if (!done) co_return fail(done.error());
  LogScan scan(env_, io_, layout(), found_.label.id, found_.superblock);
  done = co_await scan.run();
  if (!done) co_return fail(done.error());
  found_.keys.tail = scan.end();
  done = co_await replay(scan);
  if (!done) co_return fail(done.error());
  if (found_.keys.tail < checkpoint().key_stable) {
    co_return fail(Errc::kCorrupt, "the key log is damaged where it was durable");
  }
  found_.values.tail = std::max(found_.values.tail, found_.values.head);
  if (found_.values.tail - found_.values.head > layout().value_units) {
    co_return fail(Errc::kCorrupt, "the key log points outside of the value log");
  }
  find_key_head();
  co_return std::move(found_);
}

}  // namespace

Task<Result<Recovered>> recover(env::Env& env, drive::Drive& drive, Duration io_timeout) {
  Result<std::optional<drive::Label>> label = co_await drive::read_label(env, drive, kLabelKind);
  if (!label) co_return fail(label.error());
  if (!*label || (*label)->body.empty()) {
    co_return fail(Errc::kNotFound, "there is no key-value store on the drive");
  }
  const Result<Superblock> superblock = decode_superblock((*label)->body);
  if (!superblock) co_return fail(superblock.error());
  if (!is_sound(superblock->layout, drive.geometry()) ||
      superblock->checkpoint.key_from < superblock->layout.key_buckets ||
      superblock->checkpoint.value_head < superblock->layout.value_units) {
    co_return fail(Errc::kCorrupt, "the superblock describes another drive");
  }
  BlockIo io(env, drive, io_timeout);
  Recovery recovery(env, io, std::move(**label), *superblock);
  Result<Recovered> found = co_await recovery.run();
  co_return found;
}

}  // namespace cairn::kv::store
