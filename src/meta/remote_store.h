// SPDX-License-Identifier: Apache-2.0
// RemoteStore: the Store behind a meta::Server, in another process or on another machine.
//
// With several servers (of one store) it uses one and goes on to the next when that fails
// (rpc/client.h). Reads, keep-alives and watches try again by themselves; a commit, a grant, a
// revocation or a compaction that may have been heard does not (see meta/store.h). In a simulated
// cluster it is how partitions and crashes hit the metadata.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "meta/store.h"
#include "meta/wire_format.h"
#include "rpc/client.h"
#include "rpc/security.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::meta {

struct RemoteStoreOptions {
  std::vector<env::Address> servers;              // at least one
  Duration timeout = 10_s;                        // of a call, with everything that is tried
  Duration connect_timeout = 2_s;                 // of one attempt
  std::shared_ptr<const rpc::Security> security;  // none: nothing is encrypted
  // Told who we are to the servers when they refuse us: errors cannot say it. May be empty.
  std::function<void(std::string)> on_refused;
};

// What a client says to people; also for its rpc::KeySecurity.
rpc::ErrorTexts error_texts();

class RemoteStore final : public Store {
 public:
  RemoteStore(env::Env& env, RemoteStoreOptions options);
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
  task::Task<Result<Answer>> ask_server(Request request, task::CancelToken token);

  // An answer that is a refusal; tells who we are if we are denied.
  Error refused(Call call, Errc code) const;

  env::Env& env_;
  rpc::Client client_;
  size_t watchers_ = 0;
};

}  // namespace cairn::meta
