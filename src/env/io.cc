// SPDX-License-Identifier: Apache-2.0
#include "env/io.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace cairn::env {

task::Task<Result<void>> read_exactly(Stream& stream, MutableBytes into, task::CancelToken token) {
  size_t have = 0;
  while (have < into.size()) {
    const Result<size_t> got = co_await stream.read(into.subspan(have), token);
    if (!got) co_return fail(got.error());
    if (*got == 0) {
      const auto arrived = static_cast<int32_t>(std::min<size_t>(have, INT32_MAX));
      co_return fail(Errc::kClosed, "the peer ended the stream early", arrived);
    }
    have += *got;
  }
  co_return Result<void>{};
}

task::Task<Result<std::unique_ptr<Stream>>> connect_stream(Env& env, Address to,
                                                           StreamOptions options,
                                                           task::CancelToken token) {
  Result<Connection> connection = co_await env.connect(std::move(to), options, token);
  if (!connection) co_return fail(connection.error());
  co_return env.open(std::move(*connection));
}

}  // namespace cairn::env
