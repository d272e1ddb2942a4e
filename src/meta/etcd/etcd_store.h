// SPDX-License-Identifier: Apache-2.0
// An etcd cluster, version 3.4 or newer, as a Store, through the HTTP gateway that every
// etcd has at its client address.
//
// Several addresses are members of one cluster: it uses one and goes on to the next when that is
// dead, silent or without a leader. Reads, keep-alives and watches try again by themselves; what
// may have changed something does not (see meta/store.h). Limits are those of meta/types.h, within
// etcd's defaults; --max-txn-ops must be at least 128. Through TLS with LinesOptions::security; no
// users of etcd's.
#pragma once

#include <memory>

#include "env/env.h"
#include "meta/etcd/lines.h"
#include "meta/store.h"

namespace cairn::meta::etcd {

// A lease lasts whole seconds, rounded up, and not less than etcd's election timeout allows.
// Nothing is asked, and no connection made, before the first call.
std::unique_ptr<Store> etcd_store(env::Env& env, const LinesOptions& options);

}  // namespace cairn::meta::etcd
