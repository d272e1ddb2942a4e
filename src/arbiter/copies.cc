// SPDX-License-Identifier: Apache-2.0
#include "arbiter/copies.h"

#include <algorithm>
#include <set>

#include "arbiter/extents.h"

namespace cairn::arbiter {

using task::Task;
using volume::CopyEnd;
using volume::CopyPlace;
using volume::Mapping;
using volume::Session;

namespace {

constexpr Error kOtherPlace{Errc::kInvalid, "an extent is being copied to another place"};

bool has_same_legs(const MapEntry& one, const MapEntry& other) {
  bool is_same = one.size() == other.size();
  for (size_t i = 0; is_same && i < one.size(); ++i) {
    is_same =
        one.leg(i).mega_vol == other.leg(i).mega_vol && one.leg(i).extent == other.leg(i).extent;
  }
  return is_same;
}

}  // namespace

Task<Result<std::vector<CopyPlace>>> Copies::begin(Session session, std::vector<uint32_t> extents) {
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> found = sessions_.held(session);
  if (!found) co_return fail(found.error());
  Volume& volume = **found;
  const auto is_beyond = [&](uint32_t extent) { return extent >= volume.table.size(); };
  if (volume.record.is_snapshot || extents.empty() || extents.size() > volume::kCopiesMax ||
      std::ranges::any_of(extents, is_beyond)) {
    co_return fail(Errc::kInvalid, "extents to be copied are out of range");
  }
  std::vector<Change> changes;
  for (const uint32_t extent : std::set(extents.begin(), extents.end())) {
    const MapEntry& entry = volume.table[extent];
    const bool is_begun = volume.copies.contains(extent);
    const bool is_shared = pool_.is_shared(volume, extent);
    if (is_begun == is_shared) continue;
    MapEntry place;
    if (is_shared) {
      const Result<MapEntry> reserved =
          pool_.reserve(volume, extent, {}, volume.record.replicas, false, own_counters_);
      if (!reserved) {
        for (const Change& each : changes) pool_.unreserve({}, *each.copy);
        co_return fail(reserved.error());
      }
      place = *reserved;
      for (size_t i = 0; i < place.size(); ++i) own_counters_.note(place.leg(i).mega_vol);
    }
    changes.push_back({.extent = extent, .entry = entry, .copy = place});
  }
  if (!changes.empty()) {
    const Result<void> done = co_await store_.commit_changes(session.volume, std::move(changes));
    if (!done) co_return fail(done.error());
  }
  std::vector<CopyPlace> places;
  for (const Mapping& mapping : mappings_of(pool_, volume, extents)) {
    const auto copy = volume.copies.find(mapping.extent);
    places.push_back(
        {.now = mapping, .target = copy == volume.copies.end() ? MapEntry() : copy->second});
  }
  co_return places;
}

Task<Result<std::vector<Mapping>>> Copies::end(Session session, std::vector<CopyEnd> copies) {
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> found = sessions_.held(session);
  if (!found) co_return fail(found.error());
  const Volume& volume = **found;
  if (copies.empty() || copies.size() > volume::kCopiesMax) {
    co_return fail(Errc::kInvalid, "so many copies do not end at once");
  }
  std::vector<uint32_t> extents;
  std::vector<Change> changes;
  for (const CopyEnd& each : copies) {
    if (each.extent >= volume.table.size() ||
        std::ranges::find(extents, each.extent) != extents.end()) {
      co_return fail(Errc::kInvalid, "extents that were copied are out of range");
    }
    extents.push_back(each.extent);
    const auto place = volume.copies.find(each.extent);
    // It ended by this very request, whose answer was lost.
    if (place == volume.copies.end()) continue;
    const bool is_given_up = !each.target.is_mapped();
    if (!is_given_up && !has_same_legs(each.target, place->second)) co_return fail(kOtherPlace);
    for (size_t i = 0; is_given_up && i < place->second.size(); ++i) {
      own_counters_.avoid(place->second.leg(i).mega_vol);
    }
    changes.push_back({.extent = each.extent,
                       .entry = is_given_up ? volume.table[each.extent] : each.target,
                       .copy = MapEntry()});
  }
  if (!changes.empty()) {
    const Result<void> done = co_await store_.commit_changes(session.volume, std::move(changes));
    if (!done) co_return fail(done.error());
  }
  co_return mappings_of(pool_, volume, extents);
}

}  // namespace cairn::arbiter
