// SPDX-License-Identifier: Apache-2.0
#include "arbiter/volumes.h"

#include <algorithm>
#include <utility>

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;

namespace {

constexpr Error kFull{Errc::kNoSpace,
                      "the pool cannot promise so much: add drives to it with 'cairn pool add'"};
constexpr Error kFrozen{Errc::kInvalid, "a snapshot does not change: make a clone of it"};
constexpr Error kHasSnapshots{Errc::kExists,
                              "the volume has snapshots: 'cairn volume list --snapshots' names "
                              "them, destroy them first"};
constexpr Error kOpen{Errc::kExists, "somebody has the volume open: 'cairn volume list' says who"};

// Those that are being destroyed need it no more.
bool has_snapshots(const Pool& pool, const Volume& volume) {
  return std::ranges::any_of(pool.family(volume), [&](VolumeId id) {
    const VolumeRecord& record = pool.volumes().at(id).record;
    return record.is_snapshot && record.origin == volume.record.id && !record.is_leaving;
  });
}

}  // namespace

Result<uint32_t> Volumes::extents_for(uint64_t bytes) const {
  const uint64_t each = pool_.record.extent_bytes;
  const uint64_t extents = bytes / each + (bytes % each != 0 ? 1 : 0) + volume::kFirstDataExtent;
  if (bytes == 0 || extents > volume::kVolumeExtentsMax) {
    return fail(Errc::kInvalid, "the size of a volume is out of range");
  }
  return static_cast<uint32_t>(extents);
}

Result<void> Volumes::check_terms(const std::string& volume, const share::Terms& terms) const {
  const Result<void> sound = share::check_terms(terms);
  if (!sound || judge_ == nullptr) return sound;
  if (judge_->judge(pool_, volume, terms)) return {};
  return fail(Errc::kLimit, "the pool cannot promise the floor");
}

Task<Result<VolumeRecord>> Volumes::create(CreateArgs args) {
  Result<void> checked = volume::check_name(args.name);
  if (checked) checked = volume::check_replicas(args.replicas);
  if (checked) checked = volume::check_weights(args.weights);
  if (!checked) co_return fail(checked.error());
  const Result<uint32_t> extents = extents_for(args.bytes);
  if (!extents) co_return fail(extents.error());
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  if (pool_.volume(args.name) != nullptr) {
    co_return fail(Errc::kExists,
                   "there is a volume of that name: 'cairn volume list' names those there are");
  }
  if (!pool_.can_promise(*extents, args.replicas)) co_return fail(kFull);
  checked = check_terms(args.name, args.terms);
  if (!checked) co_return fail(checked.error());
  PoolRecord pool = pool_.record;
  VolumeRecord record{.id = VolumeId(pool.next_volume++),
                      .name = args.name,
                      .extents = *extents,
                      .replicas = args.replicas,
                      .weights = args.weights,
                      .made = store_.seconds_now()};
  record.family = record.id;
  meta::Batch batch;
  batch.put(kPoolKey, encode(pool)).put(volume_key(record.name), encode(record));
  const ShareRecord share{.id = record.id, .terms = args.terms};
  if (share.terms != share::Terms{}) batch.put(share_key(record.name), encode(share));
  const Result<void> done = co_await store_.commit(std::move(batch));
  if (!done) co_return fail(done.error());
  pool_.record = pool;
  const Result<void> added = pool_.add(record);
  if (!added) co_return fail(added.error());
  pool_.add(share);
  co_return record;
}

Task<Result<void>> Volumes::resize(std::string name, uint64_t bytes) {
  const Result<uint32_t> extents = extents_for(bytes);
  if (!extents) co_return fail(extents.error());
  co_await sessions_.end_healing(name);
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> found = store_.find(name);
  if (!found) co_return fail(found.error());
  VolumeRecord record = (*found)->record;
  if (record.is_snapshot) co_return fail(kFrozen);
  if (*extents > record.extents && !pool_.can_promise(*extents - record.extents, record.replicas)) {
    co_return fail(kFull);
  }
  if (*extents < record.extents && !record.holder.empty()) co_return fail(kOpen);
  // From the end, so that a crash in between leaves a volume with holes there.
  std::vector<Change> changes;
  for (uint32_t extent = record.extents; extent-- > *extents;) {
    if ((*found)->table[extent].is_mapped()) changes.push_back(nothing_at(**found, extent));
    if (changes.size() < volume::kMappingsMax && extent > *extents) continue;
    const Result<void> done = co_await store_.commit_changes(record.id, std::exchange(changes, {}));
    if (!done) co_return done;
  }
  record.extents = *extents;
  co_return co_await store_.commit_record(std::move(record));
}

Task<Result<void>> Volumes::set_weights(std::string name, volume::Weights weights) {
  const Result<void> checked = volume::check_weights(weights);
  if (!checked) co_return checked;
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> found = store_.find(name);
  if (!found) co_return fail(found.error());
  VolumeRecord record = (*found)->record;
  if (record.is_snapshot) co_return fail(kFrozen);
  record.weights = weights;
  co_return co_await store_.commit_record(std::move(record));
}

Task<Result<void>> Volumes::set_replicas(std::string name, uint32_t replicas) {
  const Result<void> checked = volume::check_replicas(replicas);
  if (!checked) co_return checked;
  co_await sessions_.end_healing(name);
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> found = store_.find(name);
  if (!found) co_return fail(found.error());
  VolumeRecord record = (*found)->record;
  if (record.is_snapshot) co_return fail(kFrozen);
  if (replicas > record.replicas &&
      !pool_.can_promise(record.extents, replicas - record.replicas)) {
    co_return fail(kFull);
  }
  // What the last holder's log says is for as many legs as there were: it is read by the next one.
  if (!record.holder.empty()) co_return fail(kOpen);
  record.replicas = replicas;
  co_return co_await store_.commit_record(std::move(record));
}

Task<Result<void>> Volumes::set_terms(std::string name, share::Terms terms) {
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> found = store_.find(name);
  if (!found) co_return fail(found.error());
  const Result<void> checked = check_terms(name, terms);
  if (!checked) co_return checked;
  const ShareRecord share{.id = (*found)->record.id, .terms = terms};
  meta::Batch batch;
  if (terms == share::Terms{}) {
    batch.remove(share_key(name));
  } else {
    batch.put(share_key(name), encode(share));
  }
  const Result<void> done = co_await store_.commit(std::move(batch));
  if (done) pool_.add(share);
  co_return done;
}

Task<Result<void>> Volumes::destroy(std::string name, bool by_force, CancelToken token) {
  co_await sessions_.end_healing(name);
  const Result<Volume*> found = store_.find(name);
  if (!found) co_return fail(found.error());
  const VolumeId id = (*found)->record.id;
  if (has_snapshots(pool_, **found)) co_return fail(kHasSnapshots);
  if (!(*found)->record.holder.empty()) {
    const bool is_open = sessions_.has_lease(**found) && !is_tenant((*found)->record.holder);
    if (!by_force && is_open) co_return fail(kOpen);
    const Result<void> expelled = co_await sessions_.expel_holder(id, token);
    if (!expelled) co_return expelled;
  }
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> still = store_.find(name);
  if (!still) co_return fail(still.error());
  if ((*still)->record.id != id || !(*still)->record.holder.empty()) co_return fail(kOpen);
  if (has_snapshots(pool_, **still)) co_return fail(kHasSnapshots);
  VolumeRecord record = (*still)->record;
  record.is_leaving = true;
  const Result<void> done = co_await store_.commit_record(std::move(record));
  if (done) leaving_.set();
  co_return done;
}

Task<void> Volumes::close() {
  leaving_.set();
  co_await gate_.close();
}

Task<void> Volumes::dismantle() {
  while (!store_.is_stopping()) {
    leaving_.reset();
    const Result<bool> is_over = co_await dismantle_step();
    if (!is_over) break;
    if (!*is_over) continue;
    const Result<void> waited = co_await leaving_.wait(store_.stop_token());
    if (!waited) break;
  }
}

// True: no volume is to be destroyed.
Task<Result<bool>> Volumes::dismantle_step() {
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const auto found = std::ranges::find_if(
      pool_.volumes(), [](const auto& each) { return each.second.record.is_leaving; });
  if (found == pool_.volumes().end()) co_return true;
  const Volume& volume = found->second;
  const VolumeId id = found->first;
  std::vector<Change> changes;
  for (uint32_t extent = 0; extent < volume.table.size() && volume.mapped > 0; ++extent) {
    if (!volume.table[extent].is_mapped()) continue;
    changes.push_back(nothing_at(volume, extent));
    if (changes.size() == volume::kMappingsMax) break;
  }
  if (!changes.empty()) {
    const Result<void> done = co_await store_.commit_changes(id, std::move(changes));
    if (!done) co_return fail(done.error());
    co_return false;
  }
  meta::Batch batch;
  batch.remove(volume_key(volume.record.name)).remove(share_key(volume.record.name));
  const Result<void> done = co_await store_.commit(std::move(batch));
  if (!done) co_return fail(done.error());
  pool_.remove(id);
  sessions_.forget(id);
  co_return false;
}

}  // namespace cairn::arbiter
