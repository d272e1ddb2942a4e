// SPDX-License-Identifier: Apache-2.0
// What comes back from a medium, judged before it is believed.
#include <algorithm>
#include <utility>

#include "meta/state.h"

namespace cairn::meta {

namespace {

std::unexpected<Error> corrupt(const char* what) { return fail(Errc::kCorrupt, what); }

}  // namespace

Result<void> State::restore(const Lease& lease) {
  if (lease.id == LeaseId() || !check_ttl(lease.ttl)) return corrupt("a kept lease makes no sense");
  if (leases_.size() >= kLeasesMax) return corrupt("more leases than there can be");
  if (!leases_.emplace(lease.id, LeaseState{.ttl = lease.ttl, .end = {}, .keys = {}}).second) {
    return corrupt("a lease that is there twice");
  }
  return {};
}

Result<void> State::restore(Row row) {
  Entry& entry = row.entry;
  const RowId place{entry.modified, row.index};
  if (!check_key(entry.key) || entry.value.size() > kValueMax || entry.modified <= Revision(1)) {
    return corrupt("a kept metadata row makes no sense");
  }
  if (!restoring_.empty() && place <= restoring_.back().first) {
    return corrupt("kept metadata rows are out of order");
  }
  const auto key = keys_.try_emplace(entry.key).first;
  const Version* before = key->second.empty() ? nullptr : &key->second.back();
  if (before != nullptr && before->modified == entry.modified) {
    return corrupt("a metadata key that one commit wrote twice");
  }
  if (row.removed) {
    const bool says_more =
        !entry.value.empty() || entry.created != Revision() || entry.lease != LeaseId();
    if (says_more || before == nullptr || before->removed) {
      return corrupt("a removal of a metadata key that makes no sense");
    }
  } else {
    // Without its earlier versions it is not known when a key began, only that it was before.
    const bool fits = before == nullptr ? entry.created <= entry.modified
                      : before->removed ? entry.created == entry.modified
                                        : entry.created == before->created;
    if (entry.created <= Revision(1) || !fits) {
      return corrupt("a metadata key that began at another time than it did");
    }
  }
  key->second.push_back(Version{.value = std::move(entry.value),
                                .created = entry.created,
                                .modified = entry.modified,
                                .lease = entry.lease,
                                .index = row.index,
                                .removed = row.removed});
  restoring_.emplace_back(place, key);
  return {};
}

Result<void> State::restored(Revision revision, Revision compacted, LeaseId last_lease, Time now) {
  if (revision < Revision(1) || compacted > revision) {
    return corrupt("the kept revisions make no sense");
  }
  revision_ = revision;
  compacted_ = compacted;
  last_lease_ = last_lease;
  if (!leases_.empty() && leases_.rbegin()->first > last_lease) {
    return corrupt("a lease that was not granted yet");
  }
  if (const Result<void> log = restore_commits(); !log) return log;
  for (const auto& [key, versions] : keys_) {
    const Version& newest = versions.back();
    if (newest.removed) continue;
    bytes_ += key.size() + newest.value.size();
    if (newest.lease == LeaseId()) continue;
    const auto lease = leases_.find(newest.lease);
    if (lease == leases_.end()) return corrupt("a metadata key that outlived its lease");
    lease->second.keys.insert(key);
  }
  restart_leases(now);
  return {};
}

// Every commit after compacted_ is there, and whole as far as its numbering tells.
Result<void> State::restore_commits() {
  commits_.clear();
  if (compacted_ == Revision()) commits_.emplace_back();
  Revision last(std::max<uint64_t>(compacted_.value(), 1));
  for (const auto& [place, key] : restoring_) {
    if (place.revision <= compacted_) continue;
    if (place.revision != last) {
      if (place.revision != next(last)) return corrupt("a metadata commit is missing");
      commits_.emplace_back();
      last = place.revision;
    }
    Commit& commit = commits_.back();
    if (place.index != commit.keys.size()) return corrupt("a part of a metadata commit is missing");
    const auto version =
        std::ranges::lower_bound(key->second, place.revision, {}, &Version::modified);
    const size_t bytes = key->first.size() + version->value.size();
    commit.keys.push_back(key);
    commit.bytes += bytes;
    history_bytes_ += bytes;
  }
  if (last != revision_) return corrupt("the last metadata commits are missing");
  restoring_ = {};
  return {};
}

}  // namespace cairn::meta
