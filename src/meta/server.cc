// SPDX-License-Identifier: Apache-2.0
#include "meta/server.h"

#include <array>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "task/deadline.h"

namespace cairn::meta {

namespace {

// How long a watch may stand still before its client is told where it stands.
constexpr Duration kPositionInterval = 5_s;

// In the order of Call.
constexpr std::array<rpc::Method, kLastCall> kMethods = {{
    {.verb = "read", .needs = rpc::Role::kReader},
    {.verb = "read", .needs = rpc::Role::kReader},
    {.verb = "commit"},
    {.verb = "hold leases"},
    {.verb = "hold leases"},
    {.verb = "hold leases"},
    {.verb = "compact"},
    {.verb = "read", .needs = rpc::Role::kReader, .pushes = true},
}};

// The result of a call as an answer of the protocol.
template <class T>
Result<Answer> as_answer(Result<T> result) {
  if (!result) return fail(result.error());
  if constexpr (std::is_void_v<T>) {
    return Answer(std::monostate());
  } else {
    return Answer(std::move(*result));
  }
}

}  // namespace

Server::Server(env::Env& env, Store& store, rpc::ServerOptions options)
    : env_(env), store_(store), server_(env, *this, std::move(options)) {}

std::optional<rpc::Method> Server::find(uint16_t method) const {
  if (method == 0 || method > kLastCall) return std::nullopt;
  return kMethods[method - 1];
}

task::Task<Result<std::string>> Server::call(uint16_t method, std::string body,
                                             rpc::Caller /*caller*/, task::CancelToken token) {
  Result<CallArgs> request = decode_args(static_cast<Call>(method), as_bytes(body));
  if (!request) co_return fail(request.error());
  const Result<Answer> answered = co_await answer(std::move(*request), token);
  if (!answered) co_return fail(answered.error());
  co_return encode(*answered);
}

task::Task<Result<Answer>> Server::answer(CallArgs request, task::CancelToken token) {
  switch (call_of(request)) {
    case Call::kGet: {
      auto result = co_await store_.get(std::move(std::get<GetRequest>(request).key), token);
      co_return as_answer(std::move(result));
    }
    case Call::kList: {
      auto result = co_await store_.list(std::move(std::get<ListOptions>(request)), token);
      co_return as_answer(std::move(result));
    }
    case Call::kCommit: {
      auto result = co_await store_.commit(std::move(std::get<Batch>(request)), token);
      co_return as_answer(std::move(result));
    }
    case Call::kGrant: {
      auto result = co_await store_.grant(std::get<GrantRequest>(request).ttl, token);
      co_return as_answer(std::move(result));
    }
    case Call::kKeepAlive: {
      auto result = co_await store_.keep_alive(std::get<KeepAliveRequest>(request).lease, token);
      co_return as_answer(std::move(result));
    }
    case Call::kRevoke: {
      auto result = co_await store_.revoke(std::get<RevokeRequest>(request).lease, token);
      co_return as_answer(std::move(result));
    }
    case Call::kCompact: {
      auto result = co_await store_.compact(std::get<CompactRequest>(request).upto, token);
      co_return as_answer(std::move(result));
    }
    case Call::kWatch:
      break;
  }
  co_return fail(Errc::kUnsupported, "a watch is a subscription");
}

task::Task<Result<void>> Server::subscribe(uint16_t /*method*/, std::string body,
                                           rpc::Caller /*caller*/, rpc::Pushes& pushes,
                                           task::CancelToken token) {
  Result<CallArgs> request = decode_args(Call::kWatch, as_bytes(body));
  if (!request) co_return fail(request.error());
  auto& wanted = std::get<WatchRequest>(*request);
  Result<std::unique_ptr<Watch>> watch =
      co_await store_.watch(std::move(wanted.range), wanted.from, token);
  if (!watch) co_return fail(watch.error());
  Result<void> pushed;
  if (wanted.from == Revision()) {
    pushed = co_await pushes.push(encode(Answer(WatchPush{{}, (*watch)->position()})), token);
  }
  if (pushed) pushed = co_await push_changes(**watch, pushes, token);
  co_await (*watch)->close();
  co_return pushed;
}

task::Task<Result<void>> Server::push_changes(Watch& watch, rpc::Pushes& pushes,
                                              task::CancelToken token) {
  Revision told = watch.position();
  while (true) {
    Result<std::vector<Change>> changes;
    {
      task::Deadline deadline(env_, env_.now() + kPositionInterval, token);
      changes = co_await watch.next(deadline.token());
      if (!changes && deadline.expired()) changes = std::vector<Change>();
    }
    if (!changes) co_return fail(changes.error());
    if (changes->empty() && watch.position() == told) continue;
    told = watch.position();
    const Result<void> pushed =
        co_await pushes.push(encode(Answer(WatchPush{std::move(*changes), told})), token);
    if (!pushed) co_return pushed;
  }
}

}  // namespace cairn::meta
