// SPDX-License-Identifier: Apache-2.0
// State: what a metadata store knows, as a value: keys with their versions, the order of commits,
// leases. No I/O and no clock: who owns it says what time it is and makes its mutations durable.
//
// Every change is applied to the state first and described by a Mutation; reads name the revision
// they want, so an owner shows only what is durable. All requests must have passed the checks of
// meta/types.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "meta/types.h"

namespace cairn::meta {

// One version of one key, and its place: the `index`-th change of commit entry.modified.
struct Row {
  Entry entry;
  bool removed = false;
  uint32_t index = 0;
  friend bool operator==(const Row&, const Row&) = default;
};

struct RowId {
  Revision revision;
  uint32_t index = 0;
  friend auto operator<=>(const RowId&, const RowId&) = default;
};

// What a call changed, to be kept all together or not at all.
struct Mutation {
  std::vector<Row> rows;  // a new revision, if there are any
  std::optional<Lease> granted;
  LeaseId ended;
  Revision compacted;          // history up to here is gone
  std::vector<RowId> dropped;  // rows that nobody needs any more
  bool empty() const {
    return rows.empty() && !granted && ended == LeaseId() && compacted == Revision();
  }
};

struct StateLimits {
  size_t bytes_max = 1_GiB;            // of present keys and values; more is kNoSpace
  size_t history_max = 100'000;        // commits; more are compacted by themselves
  size_t history_bytes_max = 256_MiB;  // of their keys and values, the same
};

class State {
 public:
  explicit State(StateLimits limits = {});
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Revision revision() const { return revision_; }
  // Reads before it, and watches from it or before, are not possible any more.
  Revision compacted() const { return compacted_; }
  size_t bytes() const { return bytes_; }

  // At a revision from compacted() to revision().
  std::optional<Entry> get(std::string_view key, Revision at) const;
  Page list(const Range& range, size_t limit, Revision at) const;

  // The changes of commits `from` to `upto`, as many as fit one answer; `from` goes behind those
  // that were looked at. kNotFound: compacted.
  Result<std::vector<Change>> changes(const Range& range, Revision& from, Revision upto) const;

  // kNotFound: no such lease; kNoSpace; kLimit: too many keys on a lease.
  Result<Committed> commit(const Batch& batch, Mutation& mutation);

  // kLimit: kLeasesMax are there.
  Result<Lease> grant(Duration ttl, Time now, Mutation& mutation);
  Result<Duration> keep_alive(LeaseId lease, Time now);
  Result<void> revoke(LeaseId lease, Mutation& mutation);
  // When the next lease ends; never: there is none. And all that have.
  Time next_end() const;
  std::vector<LeaseId> ended(Time now) const;
  // Every lease anew, as after a time without a store.
  void restart_leases(Time now);

  // Compacts what is more history than the limits allow, but nothing behind `upto`.
  void forget(Revision upto, Mutation& mutation);
  // kNotFound, kInvalid as Store::compact.
  Result<void> compact(Revision upto, Mutation& mutation);

  // Filling an empty state from what was kept: leases, then rows by their place, then the end.
  // kCorrupt: that cannot have been a state; it is good for nothing then.
  Result<void> restore(const Lease& lease);
  Result<void> restore(Row row);
  Result<void> restored(Revision revision, Revision compacted, LeaseId last_lease, Time now);

 private:
  struct Version {
    std::string value;
    Revision created;
    Revision modified;
    LeaseId lease;
    uint32_t index = 0;
    bool removed = false;
  };
  using Versions = std::vector<Version>;  // oldest first
  using Keys = std::map<std::string, Versions, std::less<>>;
  struct Commit {
    std::vector<Keys::iterator> keys;  // what it changed, in order
    size_t bytes = 0;
  };
  struct LeaseState {
    Duration ttl;
    Time end;
    std::set<std::string, std::less<>> keys;
  };

  static const Version* version_at(const Versions& versions, Revision at);
  static Entry entry_of(const std::string& key, const Version& version);
  const Version* present(std::string_view key) const;
  bool holds(const Precondition& condition) const;
  Result<void> check_room(const Batch& batch) const;
  void apply(std::string_view key, Version version, Mutation& mutation);
  void append(Keys::iterator key, Version version);
  void end_commit(Mutation& mutation);
  void drop_history(Revision upto, Mutation& mutation);
  void trim(Keys::iterator key, Revision upto, Mutation& mutation);
  Result<void> restore_commits();

  StateLimits limits_;
  Keys keys_;
  Revision revision_{1};
  Revision compacted_;
  std::deque<Commit> commits_;  // those after compacted_, up to revision_; 1 changed nothing
  std::map<LeaseId, LeaseState> leases_;
  std::set<std::pair<Time, LeaseId>> ends_;
  LeaseId last_lease_;
  size_t bytes_ = 0;          // present
  size_t history_bytes_ = 0;  // of commits_
  std::vector<std::pair<RowId, Keys::iterator>> restoring_;
};

}  // namespace cairn::meta
