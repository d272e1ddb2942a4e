// SPDX-License-Identifier: Apache-2.0
// Authentication of a queue by its host: DH-HMAC-CHAP over Authentication Send and Receive.
#pragma once

#include "base/error.h"
#include "fabric/host/queue.h"
#include "fabric/host/session.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::fabric {

// One transaction on a connected queue, with the keys of the session's options, which has some.
// kDenied: a proof was wrong, ours or the target's; the text says whose. kUnsupported: no hash or
// DH group in common, or the target cannot authenticate. kCorrupt: a message made no sense.
// kTimedOut, kCancelled: by the token. Others as CommandOp.
task::Task<Result<void>> authenticate(HostSession& session, HostQueue& queue,
                                      task::CancelToken token);

}  // namespace cairn::fabric
