// SPDX-License-Identifier: Apache-2.0
#include "meta/state.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace cairn::meta {

namespace {

size_t size_of(const Entry& entry) { return entry.key.size() + entry.value.size(); }

// What an entry takes in an answer besides its key and value, roughly.
constexpr size_t kEntryOverhead = 64;

}  // namespace

State::State(StateLimits limits) : limits_(limits) { commits_.emplace_back(); }

const State::Version* State::version_at(const Versions& versions, Revision at) {
  const auto behind = std::ranges::upper_bound(versions, at, {}, &Version::modified);
  if (behind == versions.begin()) return nullptr;
  const Version& version = *std::prev(behind);
  return version.removed ? nullptr : &version;
}

Entry State::entry_of(const std::string& key, const Version& version) {
  return {key, version.value, version.created, version.modified, version.lease};
}

const State::Version* State::present(std::string_view key) const {
  const auto found = keys_.find(key);
  if (found == keys_.end() || found->second.back().removed) return nullptr;
  return &found->second.back();
}

std::optional<Entry> State::get(std::string_view key, Revision at) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return std::nullopt;
  const Version* version = version_at(found->second, at);
  if (version == nullptr) return std::nullopt;
  return entry_of(found->first, *version);
}

Page State::list(const Range& range, size_t limit, Revision at) const {
  Page page{.revision = at};
  size_t bytes = 0;
  for (auto key = keys_.lower_bound(range.first); key != keys_.end() && range.holds(key->first);
       ++key) {
    const Version* version = version_at(key->second, at);
    if (version == nullptr) continue;
    if (page.entries.size() == limit || bytes >= kPageBytesMax) {
      page.more = true;
      break;
    }
    page.entries.push_back(entry_of(key->first, *version));
    bytes += size_of(page.entries.back()) + kEntryOverhead;
  }
  return page;
}

Result<std::vector<Change>> State::changes(const Range& range, Revision& from,
                                           Revision upto) const {
  if (from <= compacted_) {
    return fail(Errc::kNotFound, "the history to watch from was compacted: list, then watch again");
  }
  std::vector<Change> changes;
  size_t bytes = 0;
  for (; from <= upto && bytes < kPageBytesMax; from = next(from)) {
    Change change{.revision = from, .events = {}};
    for (const Keys::iterator key : commits_[from.value() - compacted_.value() - 1].keys) {
      if (!range.holds(key->first)) continue;
      const auto version = std::ranges::lower_bound(key->second, from, {}, &Version::modified);
      change.events.push_back({entry_of(key->first, *version), version->removed});
      bytes += size_of(change.events.back().entry) + kEntryOverhead;
    }
    if (!change.events.empty()) changes.push_back(std::move(change));
  }
  return changes;
}

bool State::holds(const Precondition& condition) const {
  const Version* version = present(condition.key);
  if (condition.kind == Precondition::Kind::kAbsent) return version == nullptr;
  if (version == nullptr) return false;
  switch (condition.kind) {
    case Precondition::Kind::kModified:
      return version->modified == condition.revision;
    case Precondition::Kind::kCreated:
      return version->created == condition.revision;
    case Precondition::Kind::kValue:
      return version->value == condition.value;
    case Precondition::Kind::kAbsent:
      break;
  }
  return false;
}

Result<void> State::check_room(const Batch& batch) const {
  size_t more = 0;
  size_t less = 0;
  std::map<LeaseId, size_t> joining;
  for (const Write& write : batch.writes) {
    const Version* before = present(write.key);
    if (before != nullptr) less += write.key.size() + before->value.size();
    if (!write.value) continue;
    more += write.key.size() + write.value->size();
    if (write.lease == LeaseId()) continue;
    const auto lease = leases_.find(write.lease);
    if (lease == leases_.end()) return fail(Errc::kNotFound, "the lease of a key has ended");
    if (before == nullptr || before->lease != write.lease) ++joining[write.lease];
    if (lease->second.keys.size() + joining[write.lease] > kLeaseKeysMax) {
      return fail(Errc::kLimit, "a lease has 1024 keys at most");
    }
  }
  if (more > less && bytes_ + more - less > limits_.bytes_max) {
    return fail(Errc::kNoSpace, "the metadata store is full: remove keys");
  }
  return {};
}

Result<Committed> State::commit(const Batch& batch, Mutation& mutation) {
  for (size_t i = 0; i < batch.preconditions.size(); ++i) {
    if (!holds(batch.preconditions[i])) return Committed{revision_, i};
  }
  if (const Result<void> room = check_room(batch); !room) return fail(room.error());
  for (const Write& write : batch.writes) {
    if (!write.value && present(write.key) == nullptr) continue;
    Version version{.removed = !write.value};
    if (write.value) {
      version.value = *write.value;
      version.lease = write.lease;
    }
    apply(write.key, std::move(version), mutation);
  }
  end_commit(mutation);
  return Committed{revision_, std::nullopt};
}

void State::apply(std::string_view key, Version version, Mutation& mutation) {
  const auto place = keys_.try_emplace(std::string(key)).first;
  const bool is_new = place->second.empty() || place->second.back().removed;
  version.modified = next(revision_);
  version.index = static_cast<uint32_t>(mutation.rows.size());
  if (!version.removed) version.created = is_new ? version.modified : place->second.back().created;
  mutation.rows.push_back({entry_of(place->first, version), version.removed, version.index});
  append(place, std::move(version));
}

// Keeps what is known of present keys and of leases in step with the newest version.
void State::append(Keys::iterator key, Version version) {
  if (!key->second.empty() && !key->second.back().removed) {
    const Version& before = key->second.back();
    bytes_ -= key->first.size() + before.value.size();
    if (before.lease != LeaseId()) leases_.at(before.lease).keys.erase(key->first);
  }
  if (!version.removed) {
    bytes_ += key->first.size() + version.value.size();
    if (version.lease != LeaseId()) leases_.at(version.lease).keys.insert(key->first);
  }
  key->second.push_back(std::move(version));
}

void State::end_commit(Mutation& mutation) {
  if (mutation.rows.empty()) return;
  revision_ = next(revision_);
  Commit& commit = commits_.emplace_back();
  for (const Row& row : mutation.rows) {
    commit.keys.push_back(keys_.find(row.entry.key));
    commit.bytes += size_of(row.entry);
  }
  history_bytes_ += commit.bytes;
}

void State::forget(Revision upto, Mutation& mutation) {
  Revision end = compacted_;
  size_t count = commits_.size();
  size_t bytes = history_bytes_;
  while (end < upto && (count > limits_.history_max || bytes > limits_.history_bytes_max)) {
    bytes -= commits_[commits_.size() - count--].bytes;
    end = next(end);
  }
  if (end > compacted_) drop_history(end, mutation);
}

Result<Lease> State::grant(Duration ttl, Time now, Mutation& mutation) {
  if (leases_.size() >= kLeasesMax) return fail(Errc::kLimit, "65536 leases are there already");
  last_lease_ = LeaseId(last_lease_.value() + 1);
  leases_.emplace(last_lease_, LeaseState{.ttl = ttl, .end = now + ttl, .keys = {}});
  ends_.emplace(now + ttl, last_lease_);
  mutation.granted = Lease{last_lease_, ttl};
  return *mutation.granted;
}

Result<Duration> State::keep_alive(LeaseId lease, Time now) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return fail(Errc::kNotFound, "the lease has ended");
  ends_.erase({found->second.end, lease});
  found->second.end = now + found->second.ttl;
  ends_.emplace(found->second.end, lease);
  return found->second.ttl;
}

Result<void> State::revoke(LeaseId lease, Mutation& mutation) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return fail(Errc::kNotFound, "the lease has ended");
  const std::vector<std::string> keys(found->second.keys.begin(), found->second.keys.end());
  for (const std::string& key : keys) apply(key, Version{.removed = true}, mutation);
  end_commit(mutation);
  ends_.erase({found->second.end, lease});
  leases_.erase(found);
  mutation.ended = lease;
  return {};
}

Time State::next_end() const { return ends_.empty() ? Time::never() : ends_.begin()->first; }

std::vector<LeaseId> State::ended(Time now) const {
  std::vector<LeaseId> ended;
  for (const auto& [end, lease] : ends_) {
    if (end > now) break;
    ended.push_back(lease);
  }
  return ended;
}

void State::restart_leases(Time now) {
  ends_.clear();
  for (auto& [id, lease] : leases_) {
    lease.end = now + lease.ttl;
    ends_.emplace(lease.end, id);
  }
}

Result<void> State::compact(Revision upto, Mutation& mutation) {
  if (upto <= compacted_) return fail(Errc::kNotFound, "that history was compacted before");
  if (upto > revision_) return fail(Errc::kInvalid, "a revision that is not there yet");
  drop_history(upto, mutation);
  return {};
}

void State::drop_history(Revision upto, Mutation& mutation) {
  while (compacted_ < upto) {
    const Commit commit = std::move(commits_.front());
    commits_.pop_front();
    compacted_ = next(compacted_);
    history_bytes_ -= commit.bytes;
    for (const Keys::iterator key : commit.keys) trim(key, compacted_, mutation);
  }
  mutation.compacted = compacted_;
}

// Of the versions up to `upto` the newest stays, unless it says that the key was removed.
void State::trim(Keys::iterator key, Revision upto, Mutation& mutation) {
  Versions& versions = key->second;
  auto kept = std::ranges::upper_bound(versions, upto, {}, &Version::modified);
  CHECK(kept != versions.begin(), "a commit's versions are there until it is dropped");
  if (!std::prev(kept)->removed) --kept;
  for (auto old = versions.begin(); old != kept; ++old) {
    mutation.dropped.push_back({old->modified, old->index});
  }
  versions.erase(versions.begin(), kept);
  if (versions.empty()) keys_.erase(key);
}

}  // namespace cairn::meta
