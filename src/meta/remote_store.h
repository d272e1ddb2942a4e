// SPDX-License-Identifier: Apache-2.0
// RemoteStore: the Store behind a meta::Server, in another process or on another machine.
//
// With several servers (of one store) it uses one and goes on to the next when that fails. Reads,
// keep-alives and watches try again by themselves; a commit, a grant, a revocation or a compaction
// that may have been heard does not (see meta/store.h). In a simulated cluster it is how partitions
// and crashes hit the metadata.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "env/env.h"
#include "meta/lines.h"
#include "meta/store.h"
#include "meta/wire_format.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::meta {

class RemoteStore final : public Store {
 public:
  RemoteStore(env::Env& env, LinesOptions options);
  ~RemoteStore() override;

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
  class RemoteWatch;
  template <class T>
  task::Task<Result<T>> ask(Request request, task::CancelToken token);
  task::Task<Result<Answer>> ask_server(const Request& request, task::CancelToken token);

  env::Env& env_;
  Lines lines_;
  size_t watchers_ = 0;
};

}  // namespace cairn::meta
