// SPDX-License-Identifier: Apache-2.0
// Reading the pool, and changing it one commit after the other.
#include "arbiter/arbiter.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "arbiter/waiting.h"

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

Arbiter::Arbiter(env::Env& env, ArbiterParts parts, meta::Leadership& leadership,
                 ArbiterOptions options)
    : env_(env),
      parts_(parts),
      leadership_(leadership),
      options_(std::move(options)),
      host_(fmt::format("{}.{}", options_.host, leadership.fencing().value())),
      own_counters_(env, pool_, parts.loads),
      broken_(leadership.lost_token()),
      stop_(broken_.token()),
      cleaner_(env, parts.source, *this, host_, options_.retry) {}

Arbiter::~Arbiter() = default;

Task<Result<std::unique_ptr<Arbiter>>> Arbiter::load(env::Env& env, ArbiterParts parts,
                                                     meta::Leadership& leadership,
                                                     ArbiterOptions options, CancelToken token) {
  auto arbiter = std::make_unique<Arbiter>(env, parts, leadership, std::move(options));
  const Result<void> read = co_await arbiter->read_store(token);
  if (!read) {
    co_await arbiter->close();
    co_return fail(read.error());
  }
  arbiter->cleaner_.start(arbiter->identity());
  arbiter->gate_.spawn(arbiter->dismantle());
  arbiter->start_late_fences();
  co_return arbiter;
}

Task<Result<void>> Arbiter::read_store(CancelToken token) {
  meta::Store& store = parts_.store;
  const Result<std::optional<meta::Entry>> record = co_await store.get(kPoolKey, token);
  if (!record) co_return fail(record.error());
  const Result<std::optional<meta::Entry>> writer = co_await store.get(kWriterKey, token);
  if (!writer) co_return fail(writer.error());
  meta::Batch batch;
  if (*record) {
    Result<PoolRecord> pool = decode_pool(as_bytes((*record)->value));
    if (!pool) co_return fail(pool.error());
    pool_.record = *pool;
  } else {
    pool_.record.extent_bytes = options_.extent_bytes;
    env_.rng().fill(std::as_writable_bytes(std::span(pool_.record.uuid)));
    batch.put(kPoolKey, encode(pool_.record));
  }
  if (*writer && (*writer)->value != host_) former_writer_ = (*writer)->value;
  // Both stay unsafe until the former one is fenced: it is said then that this one may write.
  if (!*writer) batch.put(kWriterKey, host_);
  if (!batch.writes.empty()) {
    const Result<void> made = co_await commit(std::move(batch));
    if (!made) co_return made;
  }

  Result<void> read = co_await visit_all(
      store, kMegaVolPrefix, token, [this](const meta::Entry& entry) -> Result<void> {
        const Result<DriveRecord> drive = decode_drive(as_bytes(entry.value));
        if (!drive) return fail(drive.error());
        return pool_.add(*drive);
      });
  if (!read) co_return read;
  read = co_await visit_all(store, kVolumePrefix, token,
                            [this](const meta::Entry& entry) -> Result<void> {
                              Result<VolumeRecord> volume = decode_volume(as_bytes(entry.value));
                              if (!volume) return fail(volume.error());
                              // Whoever had renewed a lease elsewhere has all of it once more.
                              lease_ends_[volume->id] = env_.now() + options_.lease;
                              return pool_.add(std::move(*volume));
                            });
  if (!read) co_return read;
  read = co_await visit_all(store, kSharePrefix, token,
                            [this](const meta::Entry& entry) -> Result<void> {
                              const Result<ShareRecord> share = decode_share(as_bytes(entry.value));
                              if (!share) return fail(share.error());
                              pool_.add(*share);
                              return {};
                            });
  if (!read) co_return read;
  read = co_await visit_all(store, kMapPrefix, token,
                            [this](const meta::Entry& entry) -> Result<void> {
                              const Result<MapKey> key = parse_map_key(entry.key);
                              if (!key) return fail(key.error());
                              const Result<MapChunk> chunk = decode_map(as_bytes(entry.value));
                              if (!chunk) return fail(chunk.error());
                              return pool_.add(key->volume, key->chunk, *chunk);
                            });
  if (!read) co_return read;
  read = co_await visit_all(store, kCopyPrefix, token,
                            [this](const meta::Entry& entry) -> Result<void> {
                              const Result<MapKey> key = parse_map_key(entry.key);
                              if (!key) return fail(key.error());
                              const Result<MapChunk> chunk = decode_map(as_bytes(entry.value));
                              if (!chunk) return fail(chunk.error());
                              return pool_.add_copies(key->volume, key->chunk, *chunk);
                            });
  if (!read) co_return read;
  read = co_await visit_all(
      store, kCleaningPrefix, token, [this](const meta::Entry& entry) -> Result<void> {
        const Result<CleaningKey> key = parse_cleaning_key(entry.key);
        if (!key) return fail(key.error());
        Result<std::vector<uint32_t>> extents = decode_cleaning(as_bytes(entry.value));
        if (!extents) return fail(extents.error());
        const Result<void> added = pool_.add_cleaning(key->mega_vol, *extents);
        if (!added) return added;
        next_cleaning_ = std::max(next_cleaning_, key->number + 1);
        cleaner_.add(pool_.member(key->mega_vol)->info, {*key, std::move(*extents)});
        return {};
      });
  if (read) note_free_numbers();
  co_return read;
}

Task<void> Arbiter::close() {
  stop_.request();
  leaving_.set();
  co_await cleaner_.close();
  co_await gate_.close();
}

Task<Result<task::Units>> Arbiter::take_turn() {
  const Result<void> turn = co_await turn_.acquire(1, stop_.token());
  if (!turn) co_return fail(kAway);
  task::Units units(turn_, 1);
  if (!is_working()) co_return fail(kAway);
  co_return units;
}

Task<Result<void>> Arbiter::commit(meta::Batch batch) {
  if (!is_working()) co_return fail(kAway);
  leadership_.fence(batch);
  const Result<meta::Committed> committed = co_await parts_.store.commit(std::move(batch));
  if (committed && committed->done()) co_return Result<void>();
  // It may have been carried out, or another leads: what is in memory may be wrong from here on.
  broken_.request();
  co_return fail(kUnsure);
}

Task<Result<void>> Arbiter::commit_changes(VolumeId id, std::vector<Change> changes,
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
    cleaner_.add(pool_.member(drive)->info, std::move(cleaning));
  }
  co_return done;
}

Task<Result<void>> Arbiter::commit_record(VolumeRecord record) {
  meta::Batch batch;
  batch.put(volume_key(record.name), encode(record));
  const Result<void> done = co_await commit(std::move(batch));
  if (!done) co_return done;
  pool_.set_record(*pool_.volume(record.id), std::move(record));
  co_return done;
}

// A commit that changes nothing is refused as any other when another leads.
Task<Result<void>> Arbiter::confirm_leading() {
  const Result<task::Units> turn = co_await take_turn();
  if (!turn) co_return fail(turn.error());
  meta::Batch batch;
  batch.put(kPoolKey, encode(pool_.record));
  co_return co_await commit(std::move(batch));
}

Task<Result<void>> Arbiter::commit_cleaned(CleaningKey key, std::vector<uint32_t> extents) {
  const Result<task::Units> turn = co_await take_turn();
  if (!turn) co_return fail(turn.error());
  meta::Batch batch;
  batch.remove(cleaning_key(key.mega_vol, key.number));
  const Result<void> done = co_await commit(std::move(batch));
  if (done) pool_.cleaned(key.mega_vol, extents);
  co_return done;
}

std::vector<MegaVolInfo> Arbiter::mega_vols() const {
  std::vector<MegaVolInfo> all;
  for (const auto& [id, member] : pool_.members()) all.push_back(member.info);
  return all;
}

}  // namespace cairn::arbiter
