// SPDX-License-Identifier: Apache-2.0
#include "kv/store/value_compactor.h"

#include <algorithm>
#include <span>
#include <utility>

#include "kv/store/compaction.h"
#include "task/when_all.h"

namespace cairn::kv::store {

using task::Task;

// A window, and behind it as much as its last record may have.
Task<ValueCompactor::Window> ValueCompactor::read(uint64_t begin) {
  const size_t size = value_window_units(core_.superblock.layout) * kUnitBytes + kRecordBytesMax;
  Result<ValueWindow> window = co_await core_.values->read_raw(begin, size);
  co_return Window{.begin = begin, .read = std::move(window)};
}

// The records that begin within so many units. Where there is none (a write that a crash tore, or
// damage) the search goes on unit by unit.
ValueCompactor::Parsed ValueCompactor::parse(const Window& window, uint64_t units) const {
  const Bytes bytes = window.read->bytes;
  Parsed parsed{.end = window.begin};
  while (parsed.end - window.begin < units) {
    const uint64_t position = parsed.end;
    const size_t offset = (position - window.begin) * kUnitBytes;
    const std::optional<Record> record =
        decode_record(core_.label.id, position, bytes.subspan(std::min(offset, bytes.size())));
    if (!record) {
      ++parsed.end;
    } else if (record->header.kind == RecordKind::kSkip) {
      parsed.end += core_.value_space.lap_left(position);
      break;
    } else {
      parsed.records.push_back({.position = position, .record = *record});
      parsed.end += record->header.units();
    }
  }
  return parsed;
}

Task<Result<uint64_t>> ValueCompactor::append(RecordHeader header, Bytes key, Bytes value,
                                              bool is_durable) {
  const uint64_t units = header.units();
  const Result<void> reserved = co_await core_.value_space.reserve(
      units, LogSpace::User::kCompaction, core_.stopping.token());
  if (!reserved) co_return fail(reserved.error());
  Room room(core_.value_space, units);
  const Result<uint64_t> written = co_await core_.values->append(header, key, value, is_durable);
  if (written) room.used(units);
  co_return written;
}

// Whether the segment has changed.
Task<Result<bool>> ValueCompactor::move_record(LockedSegment& segment, const Found& found,
                                               uint64_t fingerprint, bool is_durable) {
  std::vector<Item>& items = segment.write.items;
  const auto item = std::ranges::find(items, fingerprint, &Item::fingerprint);
  if (item == items.end() || core_.position_of(*item) != found.position) co_return false;
  const Record& record = found.record;
  const Result<uint64_t> written =
      co_await append(record.header, record.key, record.value, is_durable);
  if (!written) co_return fail(written.error());
  item->place = core_.value_space.place_of(*written);
  item->is_fresh = true;
  co_return true;
}

// The piece, and the record that says where the pieces are.
Task<Result<bool>> ValueCompactor::move_piece(LockedSegment& segment, const Found& found,
                                              const PieceOwner& owner, bool is_durable) {
  std::vector<Item>& items = segment.write.items;
  const auto item = std::ranges::find(items, owner.fingerprint, &Item::fingerprint);
  if (item == items.end() || !is_in_pieces(item->key_bytes, item->value_bytes) ||
      item->version != found.record.header.version) {
    co_return false;
  }
  const size_t list_bytes = pieces_of(item->value_bytes) * kPlaceBytes;
  const Result<ValueLog::Stored> list = co_await core_.values->read(
      core_.position_of(*item), kRecordHeaderBytes + item->key_bytes + list_bytes);
  // Nobody can find pieces whose list is damaged.
  if (!list && list.error() == Errc::kCorrupt) {
    ++core_.stats.damaged;
    co_return false;
  }
  if (!list) co_return fail(list.error());
  std::optional<std::vector<uint64_t>> places =
      decode_places(list->record.value, item->value_bytes, core_.value_space.size());
  if (!places) co_return false;
  const auto place = std::ranges::find(*places, core_.value_space.place_of(found.position));
  if (place == places->end()) co_return false;
  const Record& piece = found.record;
  Result<uint64_t> written = co_await append(piece.header, piece.key, piece.value, is_durable);
  if (!written) co_return fail(written.error());
  *place = core_.value_space.place_of(*written);
  written = co_await append(list->record.header, list->record.key,
                            std::as_bytes(std::span(*places)), is_durable);
  if (!written) co_return fail(written.error());
  item->place = core_.value_space.place_of(*written);
  item->is_fresh = true;
  co_return true;
}

Task<Result<void>> ValueCompactor::move(const Found& found) {
  const Record& record = found.record;
  const bool is_piece = record.header.kind == RecordKind::kPiece;
  PieceOwner owner;
  if (is_piece) {
    owner = decode_owner(record.key);
  } else {
    const KeyHash hash = core_.hash(as_text(record.key));
    owner = {.fingerprint = hash.fingerprint, .segment = hash.segment};
  }
  if (owner.segment >= core_.table.segments()) co_return Result<void>();
  if (core_.table.at(owner.segment).length == 0) co_return Result<void>();
  Result<LockedSegment> segment =
      co_await lock_segment(core_, owner.segment, LogSpace::User::kMover, core_.stopping.token());
  // A segment that is damaged keeps nothing alive.
  if (!segment && segment.error() == Errc::kCorrupt) co_return Result<void>();
  if (!segment) co_return fail(segment.error());
  const size_t count = segment->write.items.size();
  purge_expired(core_, segment->write);
  const KeyLog::Values values{.losses = core_.syncer.losses(),
                              .are_durable = core_.syncer.wants_durable_writes()};
  Result<bool> moved =
      is_piece ? co_await move_piece(*segment, found, owner, values.are_durable)
               : co_await move_record(*segment, found, owner.fingerprint, values.are_durable);
  if (!moved) co_return fail(moved.error());
  if (*moved) ++core_.stats.values_moved;
  if (!*moved && segment->write.items.size() == count) co_return Result<void>();
  Result<void> done = co_await commit_segment(core_, *segment, values);
  co_return done;
}

Task<Result<void>> ValueCompactor::move_in_turn(const Found& found) {
  const Result<void> entered = co_await movers_.acquire(1, core_.stopping.token());
  if (!entered) co_return entered;
  const task::Units turn(movers_, 1);
  Result<void> moved = co_await move(found);
  co_return moved;
}

Task<Result<void>> ValueCompactor::move_all(const Parsed& parsed) {
  std::vector<Task<Result<void>>> moving;
  moving.reserve(parsed.records.size());
  for (const Found& found : parsed.records) moving.push_back(move_in_turn(found));
  const std::vector<Result<void>> moved = co_await task::when_all(std::move(moving));
  for (const Result<void>& one : moved) {
    if (!one) co_return one;
  }
  co_return Result<void>();
}

Task<Result<bool>> ValueCompactor::step() {
  LogSpace& space = core_.value_space;
  const uint64_t begin = space.head();
  if (begin == space.tail()) co_return false;
  std::optional<Window> window = std::exchange(next_, std::nullopt);
  if (!window || window->begin != begin || !window->read) window = co_await read(begin);
  if (!window->read) co_return fail(window->read.error());
  const uint64_t units = std::min(
      {value_window_units(core_.superblock.layout), space.tail() - begin, space.lap_left(begin)});
  const Parsed parsed = parse(*window, units);
  std::optional<Task<Window>> reading;
  // Not where the tail is being written.
  const uint64_t prefetched = parsed.end + 2 * value_window_units(core_.superblock.layout);
  if (prefetched + kRecordBytesMax / kUnitBytes < space.tail()) reading.emplace(read(parsed.end));
  Result<void> done = co_await move_all(parsed);
  if (reading) next_ = co_await *reading;
  // What was moved must be durable before its old place is used again.
  if (done && core_.syncer.mode() != Durability::kCommit) done = co_await core_.keys->sync();
  if (!done) co_return fail(done.error());
  if (space.head() == begin) space.move_head(std::min(parsed.end, space.tail()));
  co_return true;
}

Task<void> ValueCompactor::run() { return compact(core_, core_.value_space, *this); }

}  // namespace cairn::kv::store
