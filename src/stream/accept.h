// SPDX-License-Identifier: Apache-2.0
// Accepting connections for as long as a listener gives them.
#pragma once

#include <functional>

#include "env/env.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::stream {

// Calls `visit` with each connection until `stop` is requested or the listener fails for good. Out
// of descriptors it waits a moment: connections stand in the backlog until some are free.
task::Task<void> accept_each(env::Env& env, env::Listener& listener, task::CancelToken stop,
                             std::function<void(env::Connection)> visit);

}  // namespace cairn::stream
