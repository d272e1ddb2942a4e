// SPDX-License-Identifier: Apache-2.0
#include "kv/store/reader.h"

#include <algorithm>
#include <utility>

namespace cairn::kv::store {

using task::Task;

namespace {

// A read is repeated only when the whole log was written over meanwhile.
constexpr int kAttemptsMax = 8;

// Whether what failed may be right in another attempt.
bool may_have_moved(const Core& core, uint32_t segment, SegmentTable::Chain before,
                    const Error& error) {
  return error == Errc::kCorrupt && core.table.at(segment) != before;
}

std::optional<Item> find_in(Bytes chain, size_t bucket_bytes, uint64_t fingerprint) {
  for (; !chain.empty(); chain = chain.subspan(bucket_bytes)) {
    const size_t count = item_count_of_bucket(chain);
    for (size_t i = 0; i < count; ++i) {
      if (fingerprint_of_bucket(chain, i) == fingerprint) return item_of_bucket(chain, i);
    }
  }
  return std::nullopt;
}

Task<Result<std::string>> read_pieces(Core& core, Bytes places_bytes, uint32_t value_bytes) {
  const std::optional<std::vector<uint64_t>> places =
      decode_places(places_bytes, value_bytes, core.value_space.size());
  if (!places) co_return fail(Errc::kCorrupt, "the places of a value's pieces make no sense");
  std::string value;
  value.reserve(value_bytes);
  for (const uint64_t place : *places) {
    const size_t size = std::min<size_t>(kPieceBytes, value_bytes - value.size());
    Result<ValueLog::Stored> piece = co_await core.values->read(
        core.value_space.position_of(place), kRecordHeaderBytes + kPieceOwnerBytes + size);
    if (!piece) co_return fail(piece.error());
    if (piece->record.header.kind != RecordKind::kPiece || piece->record.value.size() != size) {
      co_return fail(Errc::kCorrupt, "a piece of a value is another record");
    }
    value += as_text(piece->record.value);
  }
  co_return value;
}

}  // namespace

Meta meta_of(const Item& item) {
  Meta meta{.version = item.version, .size = item.value_bytes, .expires = {}};
  if (item.expires_ms != 0) {
    constexpr uint64_t kMsMax = INT64_MAX / 1'000'000;
    meta.expires = WallTime{static_cast<int64_t>(std::min(item.expires_ms, kMsMax)) * 1'000'000};
  }
  return meta;
}

Task<Result<std::optional<Item>>> find_item(Core& core, KeyHash hash) {
  for (int attempt = 1;; ++attempt) {
    const SegmentTable::Chain chain = core.table.at(hash.segment);
    const Result<KeyLog::Chain> read = co_await core.keys->read(hash.segment, chain);
    if (read) {
      std::optional<Item> item = find_in(read->buckets, core.io.block_bytes(), hash.fingerprint);
      if (item && core.has_expired(*item)) item.reset();
      co_return item;
    }
    if (attempt == kAttemptsMax || !may_have_moved(core, hash.segment, chain, read.error())) {
      co_return fail(read.error());
    }
  }
}

Task<Result<std::vector<Item>>> read_items(Core& core, uint32_t segment) {
  for (int attempt = 1;; ++attempt) {
    const SegmentTable::Chain chain = core.table.at(segment);
    const Result<KeyLog::Chain> read = co_await core.keys->read(segment, chain);
    if (read) {
      std::vector<Item> items;
      append_items(read->buckets, core.io.block_bytes(), items);
      std::erase_if(items, [&core](const Item& item) { return core.has_expired(item); });
      co_return items;
    }
    if (attempt == kAttemptsMax || !may_have_moved(core, segment, chain, read.error())) {
      co_return fail(read.error());
    }
  }
}

Task<Result<std::string>> read_value(Core& core, Item item, std::optional<std::string_view> key) {
  const bool in_pieces = is_in_pieces(item.key_bytes, item.value_bytes);
  const size_t inside = in_pieces ? pieces_of(item.value_bytes) * kPlaceBytes : item.value_bytes;
  Result<ValueLog::Stored> stored = co_await core.values->read(
      core.position_of(item), kRecordHeaderBytes + item.key_bytes + inside);
  if (!stored) co_return fail(stored.error());
  const Record& record = stored->record;
  const RecordKind kind = in_pieces ? RecordKind::kPieces : RecordKind::kValue;
  if (record.header.kind != kind || record.header.version != item.version ||
      record.key.size() != item.key_bytes || record.value.size() != inside ||
      (key && as_text(record.key) != *key)) {
    co_return fail(Errc::kCorrupt, "the value log holds another record there");
  }
  if (!in_pieces) co_return std::string(as_text(record.value));
  Result<std::string> value = co_await read_pieces(core, record.value, item.value_bytes);
  co_return value;
}

Task<Result<std::string>> read_key(Core& core, Item item) {
  const bool in_pieces = is_in_pieces(item.key_bytes, item.value_bytes);
  const size_t inside = in_pieces ? pieces_of(item.value_bytes) * kPlaceBytes : item.value_bytes;
  const Result<ValueLog::Stored> stored = co_await core.values->read(
      core.position_of(item), kRecordHeaderBytes + item.key_bytes + inside);
  if (!stored) co_return fail(stored.error());
  if (stored->record.header.version != item.version ||
      stored->record.key.size() != item.key_bytes) {
    co_return fail(Errc::kCorrupt, "the value log holds another record there");
  }
  co_return std::string(as_text(stored->record.key));
}

Task<Result<std::string>> read_key_of_damaged(Core& core, Item item, uint32_t segment) {
  const Result<ValueWindow> window =
      co_await core.values->read_raw(core.position_of(item), kRecordHeaderBytes + item.key_bytes);
  if (!window) co_return fail(window.error());
  if (window->bytes.size() == kRecordHeaderBytes + item.key_bytes) {
    const std::string_view key = as_text(window->bytes.subspan(kRecordHeaderBytes));
    const KeyHash hash{.fingerprint = item.fingerprint, .segment = segment};
    if (core.hash(key) == hash) co_return std::string(key);
  }
  co_return fail(Errc::kCorrupt, "a record of the value log is damaged, and its key");
}

Task<Result<std::optional<Entry>>> read_entry(Core& core, std::string_view key) {
  const KeyHash hash = core.hash(key);
  for (int attempt = 1;; ++attempt) {
    const SegmentTable::Chain chain = core.table.at(hash.segment);
    Result<std::optional<Item>> item = co_await find_item(core, hash);
    if (!item) co_return fail(item.error());
    if (!*item) co_return std::optional<Entry>();
    Result<std::string> value = co_await read_value(core, **item, key);
    if (value) co_return Entry{.meta = meta_of(**item), .value = std::move(*value)};
    if (attempt == kAttemptsMax || !may_have_moved(core, hash.segment, chain, value.error())) {
      co_return fail(value.error());
    }
  }
}

}  // namespace cairn::kv::store
