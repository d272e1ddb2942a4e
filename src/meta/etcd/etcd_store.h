// SPDX-License-Identifier: Apache-2.0
// EtcdStore: an etcd cluster, version 3.4 or newer, as a Store, through the HTTP gateway that every
// etcd has at its client address.
//
// Several addresses are members of one cluster: it uses one and goes on to the next when that is
// dead, silent or without a leader. Reads, keep-alives and watches try again by themselves; what
// may have changed something does not (see meta/store.h). Limits are those of meta/types.h, within
// etcd's defaults; --max-txn-ops must be at least 128. Through TLS with LinesOptions::security; no
// users of etcd's.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "env/env.h"
#include "meta/etcd/lines.h"
#include "meta/store.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::meta::etcd {

class EtcdStore final : public Store {
 public:
  EtcdStore(env::Env& env, const LinesOptions& options);
  ~EtcdStore() override;

  task::Task<Result<std::optional<Entry>>> get(std::string key, task::CancelToken token) override;
  task::Task<Result<Page>> list(ListOptions options, task::CancelToken token) override;
  task::Task<Result<Committed>> commit(Batch batch, task::CancelToken token) override;
  // Whole seconds, rounded up; not less than etcd's election timeout allows.
  task::Task<Result<Lease>> grant(Duration ttl, task::CancelToken token) override;
  task::Task<Result<Duration>> keep_alive(LeaseId lease, task::CancelToken token) override;
  task::Task<Result<void>> revoke(LeaseId lease, task::CancelToken token) override;
  task::Task<Result<std::unique_ptr<Watch>>> watch(Range range, Revision from,
                                                   task::CancelToken token) override;
  task::Task<Result<void>> compact(Revision upto, task::CancelToken token) override;
  task::Task<void> close() override;

 private:
  friend class EtcdWatch;
  enum class Repeat : bool { kNo, kYes };

  // The body of an answer with status 200.
  task::Task<Result<std::string>> ask(const char* target, std::string body, Repeat repeat,
                                      task::CancelToken token);

  env::Env& env_;
  Lines lines_;
  size_t watchers_ = 0;
};

}  // namespace cairn::meta::etcd
