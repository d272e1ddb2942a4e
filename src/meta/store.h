// SPDX-License-Identifier: Apache-2.0
// Store: metadata as ordered keys, with atomic batches, leases and watches. Contract: docs/meta.md.
//
// Who stands on it sees one store, whether it is memory, a RocksDB folder, a server across the
// network, or etcd. Commits are in one order, that of their revisions; a call sees every commit
// that was answered before it began. What was answered is durable.
//
// Errors of every call besides its own:
//   kInvalid      the request breaks a limit of meta/types.h
//   kUnreachable  no server answers; nothing was done
//   kTimedOut, kReset, kCancelled   by the token, a deadline or the network: a call that changes
//                 something may have been carried out, or will be shortly; look before repeating it
//   kCorrupt, kUnsupported   the server is not what it should be, or its answer was damaged: the
//                 same holds
//   kIo, kNoSpace the medium failed, or is full
//   kClosed       after close()
//
// An object belongs to one core. Any number of calls may be under way at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "meta/types.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::meta {

// The changes of a range, in order, none left out, none twice, whatever happens to connections.
class Watch {
 public:
  virtual ~Watch() = default;

  // The next ones, at least one; waits while there is none. One call at a time; cancelling it loses
  // nothing. kNotFound: the history it needs was compacted; list the range, and watch again from
  // the revision after the page's. That, kClosed and kCorrupt stay.
  virtual task::Task<Result<std::vector<Change>>> next(task::CancelToken token = {}) = 0;

  // Every change before it was given out: where another watch goes on.
  virtual Revision position() const = 0;

  // Before it is destroyed, and before its store is closed. No next() may be under way.
  virtual task::Task<void> close() = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  // None: the key is not there.
  virtual task::Task<Result<std::optional<Entry>>> get(std::string key,
                                                       task::CancelToken token = {}) = 0;

  // The entries of a range as they are, or were at `options.at`. kNotFound: that revision was
  // compacted; begin again without it. kInvalid: it is not there yet.
  virtual task::Task<Result<Page>> list(ListOptions options, task::CancelToken token = {}) = 0;

  // All writes, if all preconditions hold, or none. Preconditions that do not hold are an answer,
  // not an error. A batch that changes nothing makes no revision. kNotFound: a lease it names has
  // ended; nothing was written.
  virtual task::Task<Result<Committed>> commit(Batch batch, task::CancelToken token = {}) = 0;

  // A lease ends when nobody keeps it alive for its ttl, or is revoked: then its keys go, all in
  // one commit. It never ends early; a store that was away, or stood still, gives every lease its
  // full ttl again.
  virtual task::Task<Result<Lease>> grant(Duration ttl, task::CancelToken token = {}) = 0;
  // From now on the full ttl again, which is the answer. kNotFound: it has ended.
  virtual task::Task<Result<Duration>> keep_alive(LeaseId lease, task::CancelToken token = {}) = 0;
  // kNotFound: it has ended.
  virtual task::Task<Result<void>> revoke(LeaseId lease, task::CancelToken token = {}) = 0;

  // The changes from `from` on; none: every one after this call was answered. May begin in the
  // future. kLimit: more than kWatchersMax; kNotFound as Watch::next, here or there.
  virtual task::Task<Result<std::unique_ptr<Watch>>> watch(Range range, Revision from,
                                                           task::CancelToken token = {}) = 0;

  // Forgets the history up to `upto`, as far as reads before it and watches from it or before need
  // it; present entries stay. kNotFound: it was forgotten before; kInvalid: it is not there yet.
  virtual task::Task<Result<void>> compact(Revision upto, task::CancelToken token = {}) = 0;

  // Ends calls under way with kClosed and gives everything back. Once, before it is destroyed.
  virtual task::Task<void> close() = 0;
};

}  // namespace cairn::meta
