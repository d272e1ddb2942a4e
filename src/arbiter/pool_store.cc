// SPDX-License-Identifier: Apache-2.0
#include "arbiter/pool_store.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;

namespace {

constexpr Error kAway{Errc::kUnreachable, "this arbiter does not lead"};
constexpr Error kUnsure{Errc::kTimedOut, "the metadata store did not confirm a change"};

// All entries of a range, one after the other.
template <class Visit>
Task<Result<void>> visit_all(meta::Store& store, std::string prefix, CancelToken token,
                             Visit visit) {
  meta::ListOptions options{.range = meta::Range::prefix(prefix)};
  for (;;) {
    const Result<meta::Page> page = co_await store.list(options, token);
    if (!page) co_return fail(page.error());
    for (const meta::Entry& entry : page->entries) {
      const Result<void> seen = visit(entry);
      if (!seen) co_return seen;
    }
    if (!page->more || page->entries.empty()) co_return Result<void>();
    options.range = options.range.behind(page->entries.back().key);
    options.at = page->revision;
  }
}

// A chunk without extents is absent.
void put_chunk(meta::Batch& batch, const std::string& key, const MapChunk& entries) {
  const bool is_empty =
      std::ranges::none_of(entries, [](const MapEntry& entry) { return entry.is_mapped(); });
  if (is_empty) {
    batch.remove(key);
  } else {
    batch.put(key, encode(entries));
  }
}

}  // namespace

Task<Result<void>> PoolStore::read_pool_record(uint64_t extent_bytes, CancelToken token) {
  const Result<std::optional<meta::Entry>> record = co_await store_.get(kPoolKey, token);
  if (!record) co_return fail(record.error());
  const Result<std::optional<meta::Entry>> writer = co_await store_.get(kWriterKey, token);
  if (!writer) co_return fail(writer.error());
  meta::Batch batch;
  if (*record) {
    Result<PoolRecord> pool = decode_pool(as_bytes((*record)->value));
    if (!pool) co_return fail(pool.error());
    pool_.record = *pool;
  } else {
    pool_.record.extent_bytes = extent_bytes;
    env_.rng().fill(std::as_writable_bytes(std::span(pool_.record.uuid)));
    batch.put(kPoolKey, encode(pool_.record));
  }
  if (*writer && (*writer)->value != host_) former_writer_ = (*writer)->value;
  // Both stay unsafe until the former one is fenced: it is said then that this one may write.
  if (!*writer) batch.put(kWriterKey, host_);
  if (batch.writes.empty()) co_return Result<void>();
  co_return co_await commit(std::move(batch));
}

Task<Result<void>> PoolStore::read(uint64_t extent_bytes, FreedExtents& freed, CancelToken token) {
  freed_ = &freed;
  Result<void> read = co_await read_pool_record(extent_bytes, token);
  if (!read) co_return read;
  read = co_await visit_all(store_, kMegaVolPrefix, token,
                            [this](const meta::Entry& entry) -> Result<void> {
                              const Result<DriveRecord> drive = decode_drive(as_bytes(entry.value));
                              if (!drive) return fail(drive.error());
                              return pool_.add(*drive);
                            });
  if (!read) co_return read;
  read = co_await visit_all(store_, kVolumePrefix, token,
                            [this](const meta::Entry& entry) -> Result<void> {
                              Result<VolumeRecord> volume = decode_volume(as_bytes(entry.value));
                              if (!volume) return fail(volume.error());
                              return pool_.add(std::move(*volume));
                            });
  if (!read) co_return read;
  read = co_await visit_all(store_, kSharePrefix, token,
                            [this](const meta::Entry& entry) -> Result<void> {
                              const Result<ShareRecord> share = decode_share(as_bytes(entry.value));
                              if (!share) return fail(share.error());
                              pool_.add(*share);
                              return {};
                            });
  if (!read) co_return read;
  read = co_await read_maps(token);
  if (!read) co_return read;
  co_return co_await read_cleanings(token);
}

Task<Result<void>> PoolStore::read_maps(CancelToken token) {
  const Result<void> read = co_await visit_all(
      store_, kMapPrefix, token, [this](const meta::Entry& entry) -> Result<void> {
        const Result<MapKey> key = parse_map_key(entry.key);
        if (!key) return fail(key.error());
        const Result<MapChunk> chunk = decode_map(as_bytes(entry.value));
        if (!chunk) return fail(chunk.error());
        return pool_.add(key->volume, key->chunk, *chunk);
      });
  if (!read) co_return read;
  co_return co_await visit_all(store_, kCopyPrefix, token,
                               [this](const meta::Entry& entry) -> Result<void> {
                                 const Result<MapKey> key = parse_map_key(entry.key);
                                 if (!key) return fail(key.error());
                                 const Result<MapChunk> chunk = decode_map(as_bytes(entry.value));
                                 if (!chunk) return fail(chunk.error());
                                 return pool_.add_copies(key->volume, key->chunk, *chunk);
                               });
}

Task<Result<void>> PoolStore::read_cleanings(CancelToken token) {
  co_return co_await visit_all(
      store_, kCleaningPrefix, token, [this](const meta::Entry& entry) -> Result<void> {
        const Result<CleaningKey> key = parse_cleaning_key(entry.key);
        if (!key) return fail(key.error());
        Result<std::vector<uint32_t>> extents = decode_cleaning(as_bytes(entry.value));
        if (!extents) return fail(extents.error());
        const Result<void> added = pool_.add_cleaning(key->mega_vol, *extents);
        if (!added) return added;
        next_cleaning_ = std::max(next_cleaning_, key->number + 1);
        freed_->add(pool_.member(key->mega_vol)->info, {*key, std::move(*extents)});
        return {};
      });
}

Task<Result<task::Units>> PoolStore::take_turn() {
  const Result<void> turn = co_await turn_.acquire(1, stop_.token());
  if (!turn) co_return fail(kAway);
  task::Units units(turn_, 1);
  if (!is_working()) co_return fail(kAway);
  co_return units;
}

Task<Result<void>> PoolStore::commit(meta::Batch batch) {
  if (!is_working()) co_return fail(kAway);
  leadership_.fence(batch);
  const Result<meta::Committed> committed = co_await store_.commit(std::move(batch));
  if (committed && committed->done()) co_return Result<void>();
  // It may have been carried out, or another leads: what is in memory may be wrong from here on.
  broken_.request();
  co_return fail(kUnsure);
}

Task<Result<void>> PoolStore::commit_changes(VolumeId id, std::vector<Change> changes,
                                             meta::Batch batch) {
  const Volume& volume = *pool_.volume(id);
  std::set<uint32_t> chunks;
  std::set<uint32_t> copies;
  std::map<MegaVolId, Cleaning> cleanings;
  for (const Change& change : changes) {
    const uint32_t chunk = change.extent / kChunkEntries;
    if (change.entry != volume.table[change.extent]) chunks.insert(chunk);
    if (change.copy) copies.insert(chunk);
    for (const Leg& leg : pool_.freed_by(volume, change)) {
      cleanings[leg.mega_vol].extents.push_back(leg.extent);
    }
  }
  for (const uint32_t chunk : chunks) {
    put_chunk(batch, map_key(id, chunk), Pool::chunk_of(volume, chunk, changes));
  }
  for (const uint32_t chunk : copies) {
    put_chunk(batch, copy_key(id, chunk), Pool::copies_of(volume, chunk, changes));
  }
  for (auto& [drive, cleaning] : cleanings) {
    cleaning.key = {.mega_vol = drive, .number = next_cleaning_++};
    batch.put(cleaning_key(drive, cleaning.key.number), encode_cleaning(cleaning.extents));
  }
  const Result<void> done = co_await commit(std::move(batch));
  if (!done) co_return done;
  pool_.apply(*pool_.volume(id), changes);
  for (auto& [drive, cleaning] : cleanings) {
    freed_->add(pool_.member(drive)->info, std::move(cleaning));
  }
  co_return done;
}

Task<Result<void>> PoolStore::commit_record(VolumeRecord record) {
  meta::Batch batch;
  batch.put(volume_key(record.name), encode(record));
  const Result<void> done = co_await commit(std::move(batch));
  if (!done) co_return done;
  Volume& volume = *pool_.volume(record.id);
  pool_.set_record(volume, std::move(record));
  co_return done;
}

Task<Result<void>> PoolStore::drop_copies(VolumeId id) {
  while (!pool_.volume(id)->copies.empty()) {
    const Volume& volume = *pool_.volume(id);
    std::vector<Change> changes;
    for (const auto& [extent, place] : volume.copies) {
      if (changes.size() == volume::kCopiesMax) break;
      changes.push_back({.extent = extent, .entry = volume.table[extent], .copy = MapEntry()});
    }
    const Result<void> done = co_await commit_changes(id, std::move(changes));
    if (!done) co_return done;
  }
  co_return Result<void>();
}

Task<Result<void>> PoolStore::become_writer() {
  meta::Batch batch;
  batch.put(kWriterKey, host_);
  const Result<void> done = co_await commit(std::move(batch));
  if (done) former_writer_.clear();
  co_return done;
}

// A commit that changes nothing is refused as any other when another leads.
Task<Result<void>> PoolStore::confirm_leading() {
  const Result<task::Units> turn = co_await take_turn();
  if (!turn) co_return fail(turn.error());
  meta::Batch batch;
  batch.put(kPoolKey, encode(pool_.record));
  co_return co_await commit(std::move(batch));
}

Task<Result<void>> PoolStore::commit_cleaned(CleaningKey key, std::vector<uint32_t> extents) {
  const Result<task::Units> turn = co_await take_turn();
  if (!turn) co_return fail(turn.error());
  meta::Batch batch;
  batch.remove(cleaning_key(key.mega_vol, key.number));
  const Result<void> done = co_await commit(std::move(batch));
  if (done) pool_.cleaned(key.mega_vol, extents);
  co_return done;
}

Task<Result<void>> PoolStore::remove_cleanings(MegaVolId id, meta::Batch& batch) {
  meta::ListOptions options{.range = meta::Range::prefix(cleaning_prefix(id))};
  options.limit = meta::kPageMax;
  for (;;) {
    const Result<meta::Page> page = co_await store_.list(options);
    if (!page) co_return fail(page.error());
    meta::Batch some;
    for (const meta::Entry& entry : page->entries) {
      if (some.writes.size() == meta::kBatchWritesMax / 2) break;
      some.remove(entry.key);
    }
    // The last ones go together with the drive.
    if (some.writes.size() == page->entries.size() && !page->more) {
      batch.writes.insert(batch.writes.end(), some.writes.begin(), some.writes.end());
      co_return Result<void>();
    }
    const Result<void> removed = co_await commit(std::move(some));
    if (!removed) co_return removed;
  }
}

Result<Volume*> PoolStore::find(const std::string& name) {
  Volume* volume = pool_.volume(name);
  if (volume == nullptr)
    return fail(Errc::kNotFound,
                "there is no such volume: 'cairn volume list --snapshots' names those there are");
  if (volume->record.is_leaving) return fail(Errc::kNotFound, "the volume is being destroyed");
  return volume;
}

std::vector<MegaVolInfo> PoolStore::mega_vols() const {
  std::vector<MegaVolInfo> all;
  for (const auto& [id, member] : pool_.members()) all.push_back(member.info);
  return all;
}

}  // namespace cairn::arbiter
