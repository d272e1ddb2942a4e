// SPDX-License-Identifier: Apache-2.0
// The Store behind a meta::Server, in another process or on another machine.
//
// With several servers (of one store) it uses one and goes on to the next when that fails
// (rpc/client.h). Reads, keep-alives and watches try again by themselves; a commit, a grant, a
// revocation or a compaction that may have been heard does not (see meta/store.h). In a simulated
// cluster it is how partitions and crashes hit the metadata.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "meta/store.h"
#include "rpc/client.h"
#include "rpc/security.h"

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

// Nothing is asked, and no connection made, before the first call.
std::unique_ptr<Store> remote_store(env::Env& env, RemoteStoreOptions options);

}  // namespace cairn::meta
