// SPDX-License-Identifier: Apache-2.0
#include "kv/store/check.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "drive/scratch.h"
#include "kv/store/key_hash.h"
#include "kv/store/recovery.h"
#include "kv/store/segment_edit.h"
#include "kv/store/value_log.h"
#include "task/when_all.h"

namespace cairn::kv::store {

using drive::Scratch;
using task::Task;

namespace {

constexpr size_t kAtOnce = 32;  // segments

class Checker {
 public:
  Checker(env::Env& env, BlockIo& io, const Recovered& found)
      : env_(env), io_(io), found_(found), layout_(found.superblock.layout) {}

  Task<Result<CheckReport>> run();

 private:
  Task<Result<void>> check_segment(uint32_t segment);
  Task<Result<void>> check_value(uint32_t segment, Item item);
  Task<Result<std::optional<Record>>> read(uint64_t place, size_t bytes, ValueWindow& window);
  void check_totals();
  void tell(std::string what) {
    ++report_.damaged;
    if (report_.what.size() < kDamagesTold) report_.what.push_back(std::move(what));
  }
  static uint64_t position_of(uint64_t tail, uint64_t place, uint64_t size) {
    return tail - 1 - (tail - 1 - place) % size;
  }

  env::Env& env_;
  BlockIo& io_;
  const Recovered& found_;
  const Layout& layout_;
  CheckReport report_;
};

// The record at a place; none: it is damaged.
Task<Result<std::optional<Record>>> Checker::read(uint64_t place, size_t bytes,
                                                  ValueWindow& window) {
  const uint64_t position = position_of(found_.values.tail, place, layout_.value_units);
  Result<ValueWindow> got = co_await read_values(env_, io_, layout_, position, bytes);
  if (!got) co_return fail(got.error());
  window = std::move(*got);
  co_return decode_record(found_.label.id, position, window.bytes);
}

Task<Result<void>> Checker::check_value(uint32_t segment, Item item) {
  const std::string whose = "a key of segment " + std::to_string(segment);
  const bool in_pieces = is_in_pieces(item.key_bytes, item.value_bytes);
  ValueWindow window;
  const Result<std::optional<Record>> record = co_await read(item.place, kRecordBytesMax, window);
  if (!record) co_return fail(record.error());
  if (!*record || (*record)->header.version != item.version) {
    tell("the value of " + whose + " is damaged");
    co_return Result<void>();
  }
  const KeyHash hash =
      hash_of(found_.superblock.hash_key, layout_.segments, as_text((*record)->key));
  if (hash != KeyHash{.fingerprint = item.fingerprint, .segment = segment}) {
    tell("the value of " + whose + " is that of another key");
  }
  if (!in_pieces) co_return Result<void>();
  const std::optional<std::vector<uint64_t>> places =
      decode_places((*record)->value, item.value_bytes, layout_.value_units);
  if (!places) {
    tell("the list of pieces of " + whose + " makes no sense");
    co_return Result<void>();
  }
  for (const uint64_t place : *places) {
    ValueWindow piece;
    const Result<std::optional<Record>> part = co_await read(place, kRecordBytesMax, piece);
    if (!part) co_return fail(part.error());
    if (!*part) tell("a piece of the value of " + whose + " is damaged");
  }
  co_return Result<void>();
}

Task<Result<void>> Checker::check_segment(uint32_t segment) {
  const SegmentTable::Chain chain = found_.table.at(segment);
  const std::string which = "segment " + std::to_string(segment);
  if (chain.is_damaged()) tell(which + " was given up");
  if (chain.length == 0) co_return Result<void>();
  ++report_.segments;
  Result<Scratch> memory = Scratch::make(env_, chain.length * layout_.block_bytes);
  if (!memory) co_return fail(memory.error());
  const Result<void> read = co_await io_.read(layout_.key_block + chain.place, memory->bytes());
  if (!read) co_return read;
  const uint64_t position = position_of(found_.keys.tail, chain.place, layout_.key_buckets);
  if (!check_chain(found_.label.id, position, segment, memory->bytes(), layout_.block_bytes)) {
    tell(which + " is damaged");
    co_return Result<void>();
  }
  std::vector<Item> items;
  append_items(memory->bytes(), layout_.block_bytes, items);
  for (const Item& item : items) {
    ++report_.keys;
    report_.live_bytes += units_of(item) * kUnitBytes;
    const Result<void> checked = co_await check_value(segment, item);
    if (!checked) co_return checked;
  }
  co_return Result<void>();
}

// Only where all segments could be read do the numbers mean something.
void Checker::check_totals() {
  if (report_.damaged > 0) return;
  if (report_.keys != found_.totals.keys) tell("the number of keys is wrong");
  if (report_.live_bytes != found_.totals.live_units * kUnitBytes) {
    tell("the number of live bytes is wrong");
  }
}

Task<Result<CheckReport>> Checker::run() {
  report_.scanned_buckets = found_.scanned;
  for (uint64_t first = 0; first < layout_.segments; first += kAtOnce) {
    std::vector<Task<Result<void>>> checking;
    for (uint64_t i = first; i < std::min(first + kAtOnce, layout_.segments); ++i) {
      checking.push_back(check_segment(static_cast<uint32_t>(i)));
    }
    for (const Result<void>& one : co_await task::when_all(std::move(checking))) {
      if (!one) co_return fail(one.error());
    }
  }
  check_totals();
  co_return std::move(report_);
}

}  // namespace

Task<Result<CheckReport>> check(env::Env& env, drive::Drive& drive, Duration io_timeout) {
  const Result<Recovered> found = co_await recover(env, drive, io_timeout);
  if (!found) co_return fail(found.error());
  BlockIo io(env, drive, io_timeout);
  Checker checker(env, io, *found);
  Result<CheckReport> report = co_await checker.run();
  co_return report;
}

}  // namespace cairn::kv::store
