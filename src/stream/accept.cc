// SPDX-License-Identifier: Apache-2.0
#include "stream/accept.h"

#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "task/deadline.h"

namespace cairn::stream {

task::Task<void> accept_each(env::Env& env, env::Listener& listener, task::CancelToken stop,
                             std::function<void(env::Connection)> visit) {
  while (!stop.requested()) {
    Result<env::Connection> connection = co_await listener.accept(stop);
    if (connection) {
      visit(std::move(*connection));
    } else if (connection.error() == Errc::kLimit) {
      const Result<void> slept = co_await task::sleep_for(env, 50_ms, stop);
      if (!slept) co_return;
    } else {
      co_return;
    }
  }
}

}  // namespace cairn::stream
