// SPDX-License-Identifier: Apache-2.0
// What a metadata store holds and is asked: keys, batches, pages, changes; and its limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"

namespace cairn::meta {

// Counts the commits that changed something, of all clients: a total order. The first is above 1;
// zero stands for "none" or "now", as each call says.
using Revision = Id<struct RevisionTag>;
constexpr Revision next(Revision revision) { return Revision(revision.value() + 1); }

// Zero: none.
using LeaseId = Id<struct LeaseIdTag>;

inline constexpr size_t kKeyMax = 1024;          // bytes; at least one
inline constexpr size_t kValueMax = 64_KiB;      // bytes; may be empty
inline constexpr size_t kBatchWritesMax = 128;   // and as many preconditions
inline constexpr size_t kBatchBytesMax = 1_MiB;  // of all keys and values in it
inline constexpr size_t kPageMax = 256;          // entries
inline constexpr size_t kPageBytesMax = 1_MiB;   // of keys and values, before the last entry
inline constexpr size_t kWatchersMax = 256;      // per store object
inline constexpr size_t kLeasesMax = 65536;      // not of etcd, which has no such limit
inline constexpr size_t kLeaseKeysMax = 1024;    // the same
inline constexpr Duration kLeaseTtlMin = 1_s;
inline constexpr Duration kLeaseTtlMax = 86'400_s;

// A key as it was at some revision.
struct Entry {
  std::string key;
  std::string value;
  Revision created;   // by which commit the key came to be; a new life of a key is a new number
  Revision modified;  // by which it got this value
  LeaseId lease;
  friend bool operator==(const Entry&, const Entry&) = default;
};

// The keys from `first` up to, not including, `end`, compared as bytes. An empty end: all from
// `first` on.
struct Range {
  std::string first;
  std::string end;

  static Range all() { return {}; }
  static Range one(std::string_view key);
  // The keys that begin with it; of an empty one, all keys.
  static Range prefix(std::string_view prefix);

  bool holds(std::string_view key) const { return key >= first && (end.empty() || key < end); }
  // What of it lies behind `key`: the next page.
  Range behind(std::string_view key) const { return {std::string(key) + '\0', end}; }
  friend bool operator==(const Range&, const Range&) = default;
};

struct Precondition {
  enum class Kind : uint8_t {
    kAbsent,    // the key is not there
    kModified,  // it is, and was last changed by the commit `revision`
    kCreated,   // it is, and came to be by the commit `revision`
    kValue,     // it is, and has exactly this value
  };
  Kind kind = Kind::kAbsent;
  std::string key;
  Revision revision;
  std::string value;
  friend bool operator==(const Precondition&, const Precondition&) = default;
};

struct Write {
  std::string key;
  std::optional<std::string> value;  // none: the key is removed, if it is there
  LeaseId lease;                     // of a put: when it ends the key goes; none: it stays
  friend bool operator==(const Write&, const Write&) = default;
};

//   Batch batch;
//   batch.if_absent("box/7").put("box/7", record, lease);
struct Batch {
  std::vector<Precondition> preconditions;  // all must hold
  std::vector<Write> writes;                // each key once

  Batch& if_absent(std::string_view key) { return require(Precondition::Kind::kAbsent, key); }
  Batch& if_modified(std::string_view key, Revision by) {
    return require(Precondition::Kind::kModified, key, by);
  }
  Batch& if_created(std::string_view key, Revision by) {
    return require(Precondition::Kind::kCreated, key, by);
  }
  Batch& if_value(std::string_view key, std::string value) {
    return require(Precondition::Kind::kValue, key, {}, std::move(value));
  }
  Batch& put(std::string_view key, std::string value, LeaseId lease = {}) {
    writes.push_back({std::string(key), std::move(value), lease});
    return *this;
  }
  Batch& remove(std::string_view key) {
    writes.push_back({std::string(key), std::nullopt, {}});
    return *this;
  }
  friend bool operator==(const Batch&, const Batch&) = default;

 private:
  Batch& require(Precondition::Kind kind, std::string_view key, Revision revision = {},
                 std::string value = {}) {
    preconditions.push_back({kind, std::string(key), revision, std::move(value)});
    return *this;
  }
};

struct Committed {
  // That of the commit; of one that changed nothing, the store's.
  Revision revision;
  // The first precondition, by its place in the batch, that did not hold; nothing was written then.
  std::optional<size_t> failed;
  bool done() const { return !failed; }
  friend bool operator==(const Committed&, const Committed&) = default;
};

struct ListOptions {
  Range range;
  size_t limit = kPageMax;  // 1 to kPageMax
  Revision at;              // as it was then; none: as it is now
};

struct Page {
  std::vector<Entry> entries;  // by key
  Revision revision;           // at which they were so: pass it on with the next page
  bool more = false;           // behind the last entry; also when fewer than the limit came
  friend bool operator==(const Page&, const Page&) = default;
};

struct Event {
  Entry entry;  // of a removed key: key and, as `modified`, the commit that removed it
  bool removed = false;
  friend bool operator==(const Event&, const Event&) = default;
};

// What one commit did to a range, in the order of its writes. The end of a lease is a commit that
// removes its keys.
struct Change {
  Revision revision;
  std::vector<Event> events;
  friend bool operator==(const Change&, const Change&) = default;
};

struct Lease {
  LeaseId id;
  Duration ttl;  // as granted: not shorter than asked for
  friend bool operator==(const Lease&, const Lease&) = default;
};

// kInvalid: what is wrong with a request, by the limits above. Every back end asks here first, so
// that all refuse the same.
Result<void> check_key(std::string_view key);
Result<void> check_range(const Range& range);
Result<void> check_list(const ListOptions& options);
Result<void> check_batch(const Batch& batch);
Result<void> check_ttl(Duration ttl);

}  // namespace cairn::meta
