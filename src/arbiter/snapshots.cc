// SPDX-License-Identifier: Apache-2.0
#include "arbiter/snapshots.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "task/deadline.h"
#include "task/either.h"

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;
using volume::Session;

namespace {

constexpr size_t kChunksAtOnce = 96;  // of a map that is copied: within what one commit takes
constexpr Duration kAskedMax = 60_s;

constexpr Error kNoCopies{Errc::kNoSpace,
                          "the pool cannot promise places for what is shared and then written: "
                          "add drives to it with 'cairn pool add'"};
constexpr Error kManyRelatives{Errc::kLimit,
                               "a volume has at most 255 snapshots, clones and clones of those: "
                               "destroy some"};
constexpr Error kUnclean{
    Errc::kInvalid,
    "the last one who had the volume open did not close it, or nobody was told "
    "yet that drives had lost what it wrote: open it once, so that its "
    "replicas are made equal"};
constexpr Error kNoAnswer{Errc::kTimedOut,
                          "whoever has the volume open did not stop its writes in time, and "
                          "nothing was done: see whether it runs, or take the volume over"};
constexpr Error kNotReady{Errc::kIo,
                          "whoever has the volume open could not make all of it durable, and "
                          "nothing was done: see what its drives say"};

}  // namespace

struct Snapshots::Wanted {
  explicit Wanted(std::string its_name) : name(std::move(its_name)) {}
  std::string name;
  bool is_running = false;  // it is being made: what comes of it is known soon
  std::optional<Result<VolumeRecord>> outcome;
  task::Event moved;
};

Result<VolumeRecord> Snapshots::relative_of(const Volume& volume, std::string name,
                                            bool is_snapshot) const {
  const auto is_it = [&](const auto& each) { return each.second.record.name == name; };
  if (std::ranges::any_of(pool_.volumes(), is_it)) {
    return fail(Errc::kExists, is_snapshot ? "the volume has a snapshot of that name"
                                           : "there is a volume of that name: "
                                             "'cairn volume list' names those there are");
  }
  if (pool_.family(volume).size() >= volume::kFamilyMax) return fail(kManyRelatives);
  VolumeRecord record = volume.record;
  uint64_t claims = record.extents;
  if (is_snapshot) {
    // What the volume has to itself until now may have to be copied, and whoever reads the snapshot
    // has a log.
    claims = volume.mapped - volume.to_copy + 1;
    claims -= volume.table[volume::kLogExtent].is_mapped() ? 1 : 0;
    for (const auto& [extent, place] : volume.copies) {
      claims -= pool_.is_shared(volume, extent) ? 1 : 0;
    }
  }
  if (!pool_.can_promise(claims, record.replicas)) return fail(kNoCopies);
  record.id = VolumeId(pool_.record.next_volume);
  record.name = std::move(name);
  record.epoch = {};
  record.holder.clear();
  record.is_clean = true;
  record.origin = volume.record.id;
  record.is_snapshot = is_snapshot;
  record.made = store_.seconds_now();
  return record;
}

void Snapshots::holder_left(VolumeId id) {
  const auto wanted = wanted_.find(id);
  if (wanted != wanted_.end()) wanted->second->moved.set();
}

// Until all of the map is there the record says that it is leaving: so what a crash left of it
// goes.
Task<Result<VolumeRecord>> Snapshots::make_relative(VolumeId from, VolumeRecord record) {
  PoolRecord pool = pool_.record;
  ++pool.next_volume;
  record.is_leaving = true;
  meta::Batch batch;
  batch.put(kPoolKey, encode(pool)).put(volume_key(record.name), encode(record));
  Result<void> done = co_await store_.commit(std::move(batch));
  if (!done) co_return fail(done.error());
  pool_.record = pool;
  done = pool_.add(record);
  CHECK(done.has_value());
  // Whoever may still write to extents of the one somewhere may write to these.
  for (const MegaVolId drive : fencing_.unfenced_of(from)) {
    const std::string host = pool_.member(drive)->unfenced.at(from);
    done = co_await fencing_.record_unfenced(record.id, host, {drive});
    if (!done) co_return fail(done.error());
  }
  const auto chunks = static_cast<uint32_t>((record.extents + kChunkEntries - 1) / kChunkEntries);
  for (uint32_t chunk = 0; chunk < chunks;) {
    meta::Batch some;
    std::vector<std::pair<uint32_t, MapChunk>> added;
    for (; chunk < chunks && added.size() < kChunksAtOnce; ++chunk) {
      MapChunk entries = Pool::chunk_of(*pool_.volume(from), chunk, {});
      // The log is of whoever has the volume open.
      if (chunk == 0) entries[volume::kLogExtent] = {};
      if (std::ranges::none_of(entries, &MapEntry::is_mapped)) continue;
      some.put(map_key(record.id, chunk), encode(entries));
      added.emplace_back(chunk, std::move(entries));
    }
    if (added.empty()) continue;
    done = co_await store_.commit(std::move(some));
    if (!done) co_return fail(done.error());
    for (const auto& [number, entries] : added) {
      done = pool_.add(record.id, number, entries);
      CHECK(done.has_value());
    }
  }
  record.is_leaving = false;
  done = co_await store_.commit_record(record);
  if (!done) co_return fail(done.error());
  co_return record;
}

Task<Result<VolumeRecord>> Snapshots::snapshot(std::string volume, std::string name,
                                               CancelToken token) {
  const Result<void> checked = volume::check_name(name);
  if (!checked) co_return fail(checked.error());
  const Result<Volume*> found = store_.find(volume);
  if (!found) co_return fail(found.error());
  const VolumeId id = (*found)->record.id;
  if ((*found)->record.is_snapshot) {
    co_return fail(Errc::kInvalid, "a snapshot has no snapshots: make a clone of it");
  }
  Wanted wanted(volume::snapshot_name(volume, name));
  if (!wanted_.try_emplace(id, &wanted).second) {
    co_return fail(Errc::kExists, "another snapshot of the volume is being made");
  }
  Result<VolumeRecord> made = co_await await_snapshot(wanted, token);
  wanted_.erase(id);
  co_return made;
}

// By whoever has the volume open, or here when nobody has.
Task<Result<VolumeRecord>> Snapshots::await_snapshot(Wanted& wanted, CancelToken token) {
  const std::string volume = wanted.name.substr(0, wanted.name.find(volume::kSnapshotMark));
  task::Either ended(token, store_.stop_token());
  task::Deadline deadline(env_, env_.now() + limit_, ended.token());
  for (;;) {
    {
      const Result<task::Units> turn = co_await store_.take_turn();
      if (!turn) co_return fail(turn.error());
      if (wanted.outcome) co_return *wanted.outcome;
      const Result<Volume*> found = store_.find(volume);
      if (!found) co_return fail(found.error());
      const VolumeRecord& before = (*found)->record;
      Result<VolumeRecord> record = relative_of(**found, wanted.name, true);
      if (!record) co_return fail(record.error());
      if (before.holder.empty() && !before.is_clean) co_return fail(kUnclean);
      if (before.holder.empty()) co_return co_await make_relative(before.id, std::move(*record));
    }
    wanted_moved_.set();
    wanted_moved_.reset();
    const Result<void> moved = co_await wanted.moved.wait(deadline.token());
    wanted.moved.reset();
    while (wanted.is_running) {
      const Result<void> over = co_await wanted.moved.wait();
      CHECK(over.has_value());
      wanted.moved.reset();
    }
    if (wanted.outcome) co_return *wanted.outcome;
    if (store_.is_stopping()) co_return fail(Errc::kUnreachable, "this arbiter does not lead");
    if (!moved) co_return fail(kNoAnswer);
  }
}

Task<Result<volume::Asked>> Snapshots::asked(Session session, Duration wait, CancelToken token) {
  task::Either ended(token, store_.stop_token());
  task::Deadline deadline(env_, env_.now() + std::min(wait, kAskedMax), ended.token());
  for (;;) {
    const Result<Volume*> volume = sessions_.held(session);
    if (!volume) co_return fail(volume.error());
    const auto found = wanted_.find(session.volume);
    if (found != wanted_.end() && !found->second->is_running && !found->second->outcome) {
      co_return volume::Asked{.snapshot = found->second->name};
    }
    const Result<void> moved = co_await wanted_moved_.wait(deadline.token());
    if (moved) continue;
    if (store_.is_stopping()) co_return fail(Errc::kUnreachable, "this arbiter does not lead");
    co_return volume::Asked{};
  }
}

Task<Result<void>> Snapshots::freeze(Session session, std::string snapshot, bool is_ready) {
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> volume = sessions_.held(session);
  if (!volume) co_return fail(volume.error());
  const Result<Volume*> there = store_.find(snapshot);
  if (there && (*there)->record.is_snapshot && (*there)->record.origin == session.volume) {
    co_return Result<void>();
  }
  const auto found = wanted_.find(session.volume);
  if (found == wanted_.end() || found->second->name != snapshot || found->second->outcome) {
    co_return fail(Errc::kInvalid, "nobody waits for this snapshot any more");
  }
  Wanted& wanted = *found->second;
  Result<VolumeRecord> made = fail(kNotReady);
  if (is_ready) made = relative_of(**volume, snapshot, true);
  if (made) {
    wanted.is_running = true;
    made = co_await make_relative(session.volume, std::move(*made));
    wanted.is_running = false;
  }
  wanted.outcome = made;
  wanted.moved.set();
  co_return made || !is_ready ? Result<void>() : fail(made.error());
}

Task<Result<VolumeRecord>> Snapshots::clone(std::string snapshot, std::string name) {
  const Result<void> checked = volume::check_name(name);
  if (!checked) co_return fail(checked.error());
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> found = store_.find(snapshot);
  if (!found) co_return fail(found.error());
  if (!(*found)->record.is_snapshot) {
    co_return fail(Errc::kInvalid, "clones are made of snapshots: make one of the volume first");
  }
  Result<VolumeRecord> record = relative_of(**found, std::move(name), false);
  if (!record) co_return fail(record.error());
  co_return co_await make_relative((*found)->record.id, std::move(*record));
}

}  // namespace cairn::arbiter
