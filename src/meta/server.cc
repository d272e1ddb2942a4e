// SPDX-License-Identifier: Apache-2.0
#include "meta/server.h"

#include <array>
#include <utility>

#include "base/bytes.h"
#include "env/io.h"
#include "task/deadline.h"

namespace cairn::meta {

namespace {

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

Server::Server(env::Env& env, Store& store, ServerOptions options)
    : env_(env), store_(store), options_(options) {}

Server::~Server() = default;

Result<env::Address> Server::listen(const env::Address& at) {
  Result<std::unique_ptr<env::Listener>> listener = env_.listen(at);
  if (!listener) return fail(listener.error());
  listeners_.push_back(std::move(*listener));
  gate_.spawn(accept_all(*listeners_.back()));
  return listeners_.back()->local();
}

task::Task<void> Server::close() {
  stop_.request(Errc::kClosed);
  co_await gate_.close();
  listeners_.clear();
}

task::Task<void> Server::accept_all(env::Listener& listener) {
  while (!stop_.requested()) {
    Result<env::Connection> connection = co_await listener.accept(stop_.token());
    if (connection) {
      // One too many is dropped, which its client sees.
      if (connections_ < options_.connections_max) gate_.spawn(serve(std::move(*connection)));
    } else if (connection.error() == Errc::kLimit) {
      [[maybe_unused]] const Result<void> waited =
          co_await task::sleep_for(env_, 100_ms, stop_.token());
    } else {
      co_return;
    }
  }
}

task::Task<void> Server::serve(env::Connection connection) {
  ++connections_;
  {
    const std::unique_ptr<env::Stream> stream = env_.open(std::move(connection));
    bool goes_on = true;
    while (goes_on && !stop_.requested()) goes_on = co_await serve_one(*stream);
  }
  --connections_;
}

task::Task<bool> Server::serve_one(env::Stream& stream) {
  std::array<std::byte, kFrameHeadSize> head{};
  const Result<size_t> begun = co_await stream.read(MutableBytes(head).first(1), stop_.token());
  if (!begun || *begun == 0) co_return false;
  std::string body;
  Result<FrameHead> found = fail(Errc::kCorrupt, "");
  {
    task::Deadline deadline(env_, env_.now() + options_.message_timeout, stop_.token());
    const Result<void> rest =
        co_await env::read_exactly(stream, MutableBytes(head).subspan(1), deadline.token());
    if (!rest) co_return false;
    found = decode_head(head);
    if (!found || found->is_answer) co_return false;
    body.resize(found->length);
    const Result<void> all = co_await env::read_exactly(
        stream, std::as_writable_bytes(std::span(body)), deadline.token());
    if (!all || !check_body(head, as_bytes(body))) co_return false;
  }
  Result<Request> request = decode_request(found->call, as_bytes(body));
  if (!request) co_return false;
  const Result<Answer> answered = co_await answer(std::move(*request));
  std::string frame = answered ? encode(found->call, *answered)
                               : encode_refusal(found->call, answered.error().code());
  if (frame.size() > kFrameHeadSize + kFrameBodyMax) {
    frame = encode_refusal(found->call, Errc::kLimit);
  }
  task::Deadline deadline(env_, env_.now() + options_.message_timeout, stop_.token());
  const Result<void> written = co_await stream.write(as_bytes(frame), deadline.token());
  co_return written.has_value();
}

task::Task<Result<Answer>> Server::answer(Request request) {
  const task::CancelToken token = stop_.token();
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
    case Call::kPoll:
      break;
  }
  co_return co_await poll(std::move(std::get<PollRequest>(request)));
}

task::Task<Result<Answer>> Server::poll(PollRequest request) {
  Result<std::unique_ptr<Watch>> watch =
      co_await store_.watch(std::move(request.range), request.from, stop_.token());
  if (!watch) co_return fail(watch.error());
  Result<std::vector<Change>> changes;
  if (request.from != Revision()) {
    task::Deadline deadline(env_, env_.now() + options_.poll_wait, stop_.token());
    changes = co_await (*watch)->next(deadline.token());
    if (!changes && deadline.expired()) changes = std::vector<Change>();
  }
  const Revision position = (*watch)->position();
  co_await (*watch)->close();
  if (!changes) co_return fail(changes.error());
  co_return Answer(PollAnswer{std::move(*changes), position});
}

}  // namespace cairn::meta
