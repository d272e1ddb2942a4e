// SPDX-License-Identifier: Apache-2.0
// ClusterKeyspace: the keys of a cluster as a Keyspace, for the doors of its nodes.
//
// A change that looks at its key is decided here, by a read of the key's newest published record,
// and carried out by the head of the key's chain if that record is still the newest; else it is
// decided again. So changes of one key are linearizable, whichever node they come to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "kv/chain/client.h"
#include "kv/chain/replica.h"
#include "kv/chain/turns.h"
#include "kv/keyspace.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::kv::chain {

// One core. The client and the replica, which is this node's, outlive it. Errors, besides those of
// Keyspace: kUnreachable: no replica of the key answers, nothing was done; kTimedOut: it is not
// known whether a change happened, or will shortly; kUnsupported: a change that depends on several
// keys.
class ClusterKeyspace final : public Keyspace {
 public:
  ClusterKeyspace(env::Env& env, Client& client, Replica& replica, Duration timeout = 10_s)
      : env_(env), client_(client), replica_(replica), timeout_(timeout) {}

  task::Task<Result<std::optional<Entry>>> get(std::string_view key) override;
  task::Task<Result<std::optional<Meta>>> look(std::string_view key) override;
  // Of several keys each is read, or put and erased, by itself: there is no moment at which all are
  // as the change says. If some were changed before an error, they stay so.
  task::Task<Result<void>> transact(std::span<const std::string_view> keys,
                                    Change& change) override;
  // The next four are about the keys whose chains name this node: those of all nodes together are
  // the keys of the cluster, if its chains stay as they are meanwhile.
  task::Task<Result<ScanPage>> scan(uint64_t cursor, size_t count) override;
  task::Task<Result<std::optional<std::string>>> random_key() override;
  // Key by key; one that is put meanwhile may stay.
  task::Task<Result<void>> clear() override;
  // Reads all of them.
  task::Task<Result<uint64_t>> count() override;
  // When they were counted last; 0: never.
  uint64_t size() const override { return counted_; }

 private:
  task::Task<Result<void>> change_one(std::string key, Change& change);
  task::Task<Result<void>> change_by_version(std::string key, Change& change,
                                             task::CancelToken token);
  task::Task<Result<void>> change_each(std::span<const std::string_view> keys, Change& change);
  // As the edit says, whatever is there.
  task::Task<Result<void>> put(std::string key, Edit edit, task::CancelToken token);

  env::Env& env_;
  Client& client_;
  Replica& replica_;
  const Duration timeout_;
  Turns turns_;
  uint64_t counted_ = 0;
};

}  // namespace cairn::kv::chain
