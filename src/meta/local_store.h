// SPDX-License-Identifier: Apache-2.0
// LocalStore: a Store over a State in this process, which a Journal makes durable.
//
// A commit changes the state at once and is answered, and shown to readers and watchers, when its
// mutation is durable: until then they see the revision before. Mutations that come while others
// are being written go together in the next write. When a write fails, so does everything after it:
// the store has to be opened again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "env/env.h"
#include "meta/journal.h"
#include "meta/state.h"
#include "meta/store.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::meta {

class LocalStore final : public Store {
 public:
  // In memory alone.
  explicit LocalStore(env::Env& env, StateLimits limits = {});
  // With a state that the journal has restored.
  LocalStore(env::Env& env, std::unique_ptr<State> state, std::unique_ptr<Journal> journal);
  // With a state that outlives the store, and the crash of its process in a simulation: it is not
  // changed any more once the world is asked to end. Leases begin anew.
  LocalStore(env::Env& env, State& state);
  ~LocalStore() override;

  task::Task<Result<std::optional<Entry>>> get(std::string key, task::CancelToken token) override;
  task::Task<Result<Page>> list(ListOptions options, task::CancelToken token) override;
  task::Task<Result<Committed>> commit(Batch batch, task::CancelToken token) override;
  task::Task<Result<Lease>> grant(Duration ttl, task::CancelToken token) override;
  task::Task<Result<Duration>> keep_alive(LeaseId lease, task::CancelToken token) override;
  task::Task<Result<void>> revoke(LeaseId lease, task::CancelToken token) override;
  task::Task<Result<std::unique_ptr<Watch>>> watch(Range range, Revision from,
                                                   task::CancelToken token) override;
  task::Task<Result<void>> compact(Revision upto, task::CancelToken token) override;
  task::Task<void> close() override;

 private:
  class LocalWatch;
  class Inside;

  LocalStore(env::Env& env, State& state, std::unique_ptr<State> owned,
             std::unique_ptr<Journal> journal, task::CancelToken stop);

  Result<void> changeable() const;
  void keep(Mutation mutation);
  void show(uint64_t durable, Revision revision);
  // Until everything applied so far is durable.
  task::Task<Result<void>> kept(task::CancelToken token);
  task::Task<void> write_pending();
  task::Task<void> end_leases();

  env::Env& env_;
  std::unique_ptr<State> owned_;
  State& state_;
  std::unique_ptr<Journal> journal_;
  Revision shown_;  // durable, and what readers see
  std::vector<Mutation> pending_;
  uint64_t applied_ = 0;  // mutations so far
  uint64_t durable_ = 0;
  std::optional<Error> broken_;
  bool is_writing_ = false;
  size_t watchers_ = 0;
  task::Event moved_;         // durable_, shown_ or broken_ did
  task::Event leases_moved_;  // the first end may be another
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::meta
