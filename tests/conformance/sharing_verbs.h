// SPDX-License-Identifier: Apache-2.0
// More words, for what processes share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "env/address.h"
#include "env/env.h"
#include "env/sharing.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/task.h"
#include "testing/worlds/scene.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {

inline env::Sharing& shared(env::Env& env) { return *env::sharing(env); }

// The two ends of one local connection, both on this core.
struct LocalPair {
  std::unique_ptr<env::LocalStream> a;
  std::unique_ptr<env::LocalStream> b;
};

inline task::Task<LocalPair> connected_locally(env::Env& env, Scene& scene,
                                               env::StreamOptions options = {}) {
  const env::Address at = scene.local_socket("sharing").value();
  const std::unique_ptr<env::Listener> listener = must(env.listen(at, {.stream = options}));
  task::Task<Result<env::Connection>> accepting = accept_one(*listener);
  Result<env::Connection> connecting = co_await env.connect(at, options);
  Result<env::Connection> accepted = co_await accepting;
  LocalPair pair;
  pair.a = must(shared(env).open_local(must(std::move(connecting))));
  pair.b = must(shared(env).open_local(must(std::move(accepted))));
  co_return pair;
}

inline task::Task<Result<env::Received>> read_local(env::LocalStream& stream, MutableBytes into,
                                                    std::span<env::Descriptor> descriptors,
                                                    task::CancelToken token = {}) {
  Result<env::Received> result = co_await stream.read(into, descriptors, token);
  co_return result;
}
inline task::Task<Result<void>> write_local(env::LocalStream& stream, Bytes from,
                                            task::CancelToken token = {}) {
  const Result<void> result = co_await stream.write(from, {}, token);
  co_return result;
}
inline task::Task<Result<void>> hung_up(env::LocalStream& stream, task::CancelToken token = {}) {
  const Result<void> result = co_await stream.hang_up(token);
  co_return result;
}
inline task::Task<Result<void>> wait_for(env::Signal& signal, task::CancelToken token = {}) {
  const Result<void> result = co_await signal.wait(token);
  co_return result;
}

// Memory whose first bytes are a number, to know it again.
inline env::Descriptor numbered_memory(env::Env& env, uint64_t number) {
  env::Descriptor descriptor = must(shared(env).make_shared_memory(4096));
  const auto memory = must(shared(env).map_shared(descriptor, {.size = 4096}));
  store(memory->bytes(), number);
  return descriptor;
}
inline uint64_t number_of(env::Env& env, const env::Descriptor& descriptor) {
  const auto memory = must(shared(env).map_shared(descriptor, {.size = 4096, .writable = false}));
  return load<uint64_t>(memory->bytes());
}

}  // namespace cairn::conformance
