// SPDX-License-Identifier: Apache-2.0
#include "rpc/client.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "env/io.h"
#include "rpc/failover.h"
#include "task/deadline.h"
#include "task/either.h"

namespace cairn::rpc {

// What is tried, and how it went.
struct Client::Attempt {
  MethodCall request;
  CallOptions options;
  bool subscribes = false;
  Time until;
  bool is_sent = false;  // some server may have heard it
  Reply reply = {};
  std::unique_ptr<Subscription> subscription = nullptr;

  bool may_repeat() const { return !is_sent || options.repeatable; }
};

Client::Client(env::Env& env, ClientOptions options) : env_(env), options_(std::move(options)) {
  CHECK(!options_.servers.empty(), "there is a server to call");
}

Client::~Client() { CHECK(sessions_.is_closed(), "a client is closed before it is destroyed"); }

void Client::note_refusal() const {
  if (!options_.on_refused || options_.security == nullptr) return;
  const std::string who = options_.security->who();
  if (!who.empty()) options_.on_refused(who);
}

void Client::leave(const std::shared_ptr<Session>& session) {
  session->retire();
  if (session_ != session) return;
  session_ = nullptr;
  current_ = (current_ + 1) % options_.servers.size();
}

Error Client::explained(const Error& error) const {
  if (error == Errc::kDenied) return {Errc::kDenied, options_.texts.unknown_key};
  return error;
}

task::Task<Result<std::shared_ptr<Session>>> Client::open(const env::Address& server,
                                                          task::CancelToken token) {
  Result<std::unique_ptr<env::Stream>> stream =
      co_await env::connect_stream(env_, server, {}, token);
  if (stream && options_.security != nullptr) {
    Insecure plain{.stream = std::move(*stream),
                   .server = server,
                   .lingering = lingering_,
                   .timeout = options_.connect_timeout};
    stream = co_await options_.security->secure(env_, std::move(plain), token);
  }
  if (!stream) co_return fail(stream.error());
  auto session = std::make_shared<Session>(env_, std::move(*stream), options_.session);
  const Result<void> opened = co_await session->open(token);
  if (opened) co_return session;
  co_await session->run();
  if (session->met_tls()) co_return fail(Errc::kUnsupported, options_.texts.demands_tls);
  co_return fail(explained(opened.error()));
}

// Makes a connection, hands it to those who wait, and serves it to its end.
task::Task<void> Client::connect(std::shared_ptr<Connecting> connecting) {
  const env::Address server = options_.servers[current_];
  Result<std::shared_ptr<Session>> session = fail(Errc::kTimedOut, "");
  {
    task::Deadline deadline(env_, env_.now() + options_.connect_timeout, stop_.token());
    session = co_await open(server, deadline.token());
  }
  connecting_ = nullptr;
  if (session) {
    connecting->session = *session;
    session_ = *session;
    running_.push_back(*session);
  } else {
    connecting->error = session.error();
    current_ = (current_ + 1) % options_.servers.size();
  }
  connecting->done.set();
  if (!session) co_return;
  if (stop_.requested()) (*session)->end(stop_.token().error());
  co_await (*session)->run();
  std::erase(running_, *session);
  if (session_ == *session) {
    session_ = nullptr;
    current_ = (current_ + 1) % options_.servers.size();
  }
}

task::Task<Result<std::shared_ptr<Session>>> Client::session(task::CancelToken token) {
  if (session_ != nullptr && session_->takes_calls()) co_return session_;
  std::shared_ptr<Connecting> connecting = connecting_;
  if (connecting == nullptr) {
    connecting = std::make_shared<Connecting>();
    connecting_ = connecting;
    sessions_.spawn(connect(connecting));
  }
  const Result<void> waited = co_await connecting->done.wait(token);
  if (!waited) co_return fail(waited.error());
  if (connecting->error) co_return fail(*connecting->error);
  co_return connecting->session;
}

task::Task<Result<void>> Client::try_once(Attempt& attempt, task::CancelToken token) {
  Result<std::shared_ptr<Session>> session = co_await this->session(token);
  if (!session) co_return fail(session.error());
  MethodCall request = attempt.request;
  if (attempt.subscribes) {
    auto subscription = co_await (*session)->subscribe(std::move(request), token);
    if (!subscription) co_return fail(subscription.error());
    attempt.subscription = std::move(*subscription);
    co_return Result<void>{};
  }
  const Time patient =
      attempt.options.repeatable ? env_.now() + attempt.options.attempt_timeout : Time::never();
  const Time until = std::min(patient, attempt.until);
  task::Deadline deadline(env_, until, token);
  bool is_sent = false;
  Result<Reply> reply =
      co_await (*session)->call(std::move(request), until, deadline.token(), is_sent);
  const bool is_elsewhere = reply && reply->refusal && reply->refusal == attempt.options.elsewhere;
  attempt.is_sent = attempt.is_sent || (is_sent && !is_elsewhere);
  if (!reply) {
    const bool is_its_fault = !token.requested() && reply.error() != Errc::kInvalid;
    if (is_its_fault) leave(*session);
    co_return fail(reply.error());
  }
  if (reply->refusal == Errc::kClosed) {
    // It was told to end, we were not: as if it were gone.
    leave(*session);
    co_return fail(Errc::kReset, options_.texts.hung_up);
  }
  if (is_elsewhere) {
    leave(*session);
    co_return fail(Errc::kUnreachable, options_.texts.unreachable);
  }
  attempt.reply = std::move(*reply);
  co_return Result<void>{};
}

task::Task<void> Client::pause(size_t failures, task::CancelToken token) {
  const Duration pause = failover_pause(failures, options_.servers.size());
  if (pause == Duration()) co_return;
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env_, pause, token);
}

task::Task<Result<void>> Client::try_until_done(Attempt& attempt, task::CancelToken token) {
  task::Either both(token, stop_.token());
  attempt.until = env_.now() + attempt.options.timeout.value_or(options_.timeout);
  task::Deadline deadline(env_, attempt.until, both.token());
  size_t refusals = 0;
  const char* hung_up = nullptr;  // how one did last
  for (size_t failures = 1;; ++failures) {
    const Result<void> tried = co_await try_once(attempt, deadline.token());
    if (tried) co_return tried;
    if (both.token().requested()) co_return fail(both.token().error());
    const Error error = tried.error();
    if (error == Errc::kInvalid) co_return tried;
    refusals = is_refusal(error) ? refusals + 1 : 0;
    if (refusals == kRefusalsMax * options_.servers.size()) {
      note_refusal();
      co_return tried;
    }
    if (!attempt.may_repeat()) co_return tried;
    if (error == Errc::kReset) hung_up = error.what();
    co_await pause(failures, deadline.token());
    if (both.token().requested()) co_return fail(both.token().error());
    if (!deadline.expired()) continue;
    if (is_strange(error)) co_return tried;
    const Errc code = attempt.is_sent ? Errc::kTimedOut : Errc::kUnreachable;
    const ErrorTexts& texts = options_.texts;
    if (hung_up != nullptr) co_return fail(code, hung_up);
    co_return fail(code, attempt.is_sent ? texts.unanswered : texts.unreachable);
  }
}

task::Task<Result<Reply>> Client::call(MethodCall request, CallOptions options,
                                       task::CancelToken token) {
  if (token.requested()) co_return fail(token.error());
  if (!gate_.enter()) co_return fail(Errc::kClosed, options_.texts.closed);
  Attempt attempt{.request = std::move(request), .options = options, .until = {}};
  const Result<void> done = co_await try_until_done(attempt, token);
  gate_.leave();
  if (!done) co_return fail(done.error());
  co_return std::move(attempt.reply);
}

task::Task<Result<std::unique_ptr<Subscription>>> Client::subscribe(MethodCall request,
                                                                    task::CancelToken token) {
  if (token.requested()) co_return fail(token.error());
  if (!gate_.enter()) co_return fail(Errc::kClosed, options_.texts.closed);
  Attempt attempt{.request = std::move(request),
                  .options = {.repeatable = true},
                  .subscribes = true,
                  .until = {}};
  const Result<void> done = co_await try_until_done(attempt, token);
  gate_.leave();
  if (!done) co_return fail(done.error());
  co_return std::move(attempt.subscription);
}

task::Task<void> Client::close() {
  stop_.request(Errc::kClosed);
  co_await gate_.close();
  for (const std::shared_ptr<Session>& each : running_) {
    each->end({Errc::kClosed, options_.texts.closed});
  }
  co_await sessions_.close();
  co_await lingering_.close();
}

}  // namespace cairn::rpc
