// SPDX-License-Identifier: Apache-2.0
#include "arbiter/extents.h"

#include <algorithm>
#include <map>
#include <utility>

namespace cairn::arbiter {

using task::Task;
using volume::Mapping;
using volume::Session;

namespace {

Result<void> check_extents(const Volume& volume, const std::vector<uint32_t>& extents) {
  const auto is_beyond = [&](uint32_t extent) { return extent >= volume.table.size(); };
  if (extents.empty() || extents.size() > volume::kMappingsMax ||
      std::ranges::any_of(extents, is_beyond)) {
    return fail(Errc::kInvalid, "extents are out of range");
  }
  return {};
}

constexpr Error kLastLeg{Errc::kInvalid, "an extent would have no leg left that is not stale"};

}  // namespace

std::vector<Mapping> mappings_of(const Pool& pool, const Volume& volume,
                                 const std::vector<uint32_t>& extents) {
  std::vector<Mapping> all;
  all.reserve(extents.size());
  for (const uint32_t extent : extents) {
    all.push_back({.extent = extent,
                   .entry = volume.table[extent],
                   .is_shared = pool.is_shared(volume, extent)});
  }
  return all;
}

// Waits for a commit, which takes along whoever waits by then.
struct Extents::Waiting {
  Waiting(volume::Session its_session, std::vector<uint32_t> its_extents)
      : session(its_session), extents(std::move(its_extents)) {}
  volume::Session session;
  std::vector<uint32_t> extents;
  bool is_done = false;
  Result<void> result;
};

Task<Result<std::vector<Mapping>>> Extents::table(Session session, uint32_t first) {
  // Behind a commit that is under way: whoever asks may want to know what became of it.
  const Result<task::Units> units = co_await store_.take_turn();
  if (!units) co_return fail(units.error());
  const Result<Volume*> volume = sessions_.held(session);
  if (!volume) co_return fail(volume.error());
  std::vector<uint32_t> page;
  const size_t extents = (*volume)->table.size();
  for (size_t i = first; i < extents && page.size() < volume::kTablePageMax; ++i) {
    page.push_back(static_cast<uint32_t>(i));
  }
  co_return mappings_of(pool_, **volume, page);
}

Task<Result<std::vector<Mapping>>> Extents::allocate(Session session,
                                                     std::vector<uint32_t> extents) {
  const Result<Volume*> volume = sessions_.held(session);
  if (!volume) co_return fail(volume.error());
  const Result<void> checked = check_extents(**volume, extents);
  if (!checked) co_return fail(checked.error());
  Waiting waiting(session, extents);
  waiting_.push_back(&waiting);
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) {
    std::erase(waiting_, &waiting);
    if (!waiting.is_done) co_return fail(turn.error());
  }
  while (!waiting.is_done) {
    const Result<void> done = co_await allocate_waiting();
    if (!done && !waiting.is_done) {
      std::erase(waiting_, &waiting);
      co_return fail(done.error());
    }
  }
  if (!waiting.result) co_return fail(waiting.result.error());
  const Result<Volume*> still = sessions_.held(session);
  if (!still) co_return fail(still.error());
  co_return mappings_of(pool_, **still, extents);
}

// Takes along the first who waits and those after who want extents of the same volume: one commit.
Task<Result<void>> Extents::allocate_waiting() {
  const Session session = waiting_.front()->session;
  std::vector<Waiting*> served;
  std::vector<Change> changes;
  std::set<uint32_t> wanted;
  while (!waiting_.empty() && waiting_.front()->session == session &&
         wanted.size() + waiting_.front()->extents.size() <= volume::kMappingsMax) {
    Waiting& next = *waiting_.front();
    waiting_.pop_front();
    served.push_back(&next);
    wanted.insert(next.extents.begin(), next.extents.end());
  }
  const Result<Volume*> volume = sessions_.held(session);
  Result<void> done;
  if (!volume) {
    done = fail(volume.error());
  } else {
    done = plan_allocations(**volume, wanted, changes);
    if (done && !changes.empty()) {
      done = co_await store_.commit_changes(session.volume, changes);
      ++counters_.allocating_commits;
      counters_.extents_allocated += changes.size();
    }
  }
  for (Waiting* each : served) {
    each->is_done = true;
    each->result = done;
  }
  co_return Result<void>();
}

Result<void> Extents::plan_allocations(Volume& volume, const std::set<uint32_t>& extents,
                                       std::vector<Change>& changes) {
  for (const uint32_t extent : extents) {
    if (extent >= volume.table.size()) return fail(Errc::kInvalid, "extents are out of range");
    if (volume.table[extent].is_mapped()) continue;
    const Result<MapEntry> entry =
        pool_.reserve(volume, extent, {}, volume.record.replicas, false, own_counters_);
    if (!entry) {
      for (const Change& each : changes) pool_.unreserve({}, each.entry);
      changes.clear();
      return fail(entry.error());
    }
    for (size_t i = 0; i < entry->size(); ++i) own_counters_.note(entry->leg(i).mega_vol);
    changes.push_back({.extent = extent, .entry = *entry, .copy = {}});
  }
  return {};
}

Task<Result<void>> Extents::release(Session session, std::vector<uint32_t> extents) {
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> volume = sessions_.held(session);
  if (!volume) co_return fail(volume.error());
  const Result<void> checked = check_extents(**volume, extents);
  if (!checked) co_return checked;
  std::vector<Change> changes;
  for (const uint32_t extent : std::set(extents.begin(), extents.end())) {
    if ((*volume)->table[extent].is_mapped()) changes.push_back(nothing_at(**volume, extent));
  }
  if (changes.empty()) co_return Result<void>();
  co_return co_await store_.commit_changes(session.volume, std::move(changes));
}

Task<Result<std::vector<Mapping>>> Extents::report(Session session,
                                                   std::vector<volume::LegReport> legs) {
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> volume = sessions_.held(session);
  if (!volume) co_return fail(volume.error());
  std::vector<uint32_t> extents;
  extents.reserve(legs.size());
  for (const volume::LegReport& each : legs) extents.push_back(each.extent);
  const Result<void> checked = check_extents(**volume, extents);
  if (!checked) co_return fail(checked.error());
  std::map<uint32_t, MapEntry> entries;
  for (const volume::LegReport& each : legs) {
    MapEntry& entry = entries.try_emplace(each.extent, (*volume)->table[each.extent]).first->second;
    const size_t leg = entry.find(each.mega_vol);
    if (leg < entry.size()) entry.set_stale(leg, each.is_stale);
  }
  std::vector<Change> changes;
  for (const auto& [extent, entry] : entries) {
    if (entry.is_mapped() && entry.in_sync() == 0) co_return fail(kLastLeg);
    if (entry != (*volume)->table[extent])
      changes.push_back({.extent = extent, .entry = entry, .copy = {}});
  }
  if (!changes.empty()) {
    const Result<void> done = co_await store_.commit_changes(session.volume, std::move(changes));
    if (!done) co_return fail(done.error());
  }
  co_return mappings_of(pool_, *pool_.volume(session.volume), extents);
}

Task<Result<Mapping>> Extents::relocate(Session session, volume::Relocation what) {
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> volume = sessions_.held(session);
  if (!volume) co_return fail(volume.error());
  const Result<void> checked = check_extents(**volume, {what.extent});
  if (!checked) co_return fail(checked.error());
  const MapEntry before = (*volume)->table[what.extent];
  MapEntry entry = before;
  const size_t synced = what.synced ? entry.find(*what.synced) : entry.size();
  if (synced < entry.size()) entry.set_stale(synced, false);
  const size_t dropped = what.drop ? entry.find(*what.drop) : entry.size();
  // One that is not there any more was dropped by this very request, whose answer was lost.
  const bool is_repeated = what.drop && dropped == entry.size();
  if (dropped < entry.size()) {
    entry.remove(dropped);
    if (entry.in_sync() == 0) co_return fail(kLastLeg);
  }
  if (what.add && before.is_mapped() && !is_repeated) {
    if (entry.size() == volume::kReplicasMax) {
      co_return fail(Errc::kInvalid, "an extent has three legs at most");
    }
    if (what.drop) own_counters_.avoid(*what.drop);
    const Result<MapEntry> more =
        pool_.reserve(**volume, what.extent, entry, 1, true, own_counters_, what.drop);
    if (!more) co_return fail(more.error());
    entry = *more;
  }
  if (entry != before) {
    const Result<void> done =
        co_await store_.commit_changes(session.volume, {{.extent = what.extent, .entry = entry}});
    if (!done) co_return fail(done.error());
  }
  co_return mappings_of(pool_, *pool_.volume(session.volume), {what.extent}).front();
}

}  // namespace cairn::arbiter
