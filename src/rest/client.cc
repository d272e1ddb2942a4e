// SPDX-License-Identifier: Apache-2.0
#include "rest/client.h"

#include <algorithm>
#include <utility>

#include "env/io.h"
#include "task/deadline.h"

namespace cairn::rest {

namespace {

constexpr Duration kFirstPause = 100_ms;
constexpr Duration kPauseMax = 2_s;

bool may_pass(const Result<HttpAnswer>& answer) {
  if (answer) {
    const uint16_t status = answer->status();
    return status == 429 || status == 500 || (status >= 502 && status <= 504);
  }
  switch (answer.error().code()) {
    case Errc::kReset:
    case Errc::kClosed:
    case Errc::kUnreachable:
    case Errc::kTimedOut:
    case Errc::kLimit:
      return true;
    default:
      return false;
  }
}

// Of an attempt that was sent.
bool is_unanswered(const Result<HttpAnswer>& answer) { return !answer || answer->status() >= 500; }

bool is_given_up(const Result<HttpAnswer>& answer) {
  if (answer) return answer->status() == 502 || answer->status() == 504;
  return answer.error() != Errc::kReset && answer.error() != Errc::kClosed;
}

}  // namespace

task::Task<Result<HttpAnswer>> Client::send(const HttpRequest& request, task::CancelToken token) {
  Outcome outcome = co_await send_change(request, token);
  co_return std::move(outcome.answer);
}

task::Task<Outcome> Client::send_change(const HttpRequest& request, task::CancelToken token) {
  Outcome outcome;
  Duration pause = kFirstPause;
  for (uint32_t tries = 0;;) {
    if (token.requested()) {
      outcome.answer = fail(token.error());
      co_return outcome;
    }
    Attempt one = co_await attempt(request, token);
    outcome.answer = std::move(one.answer);
    if (outcome.answer) {
      unanswered_.reset();
    } else if (!one.was_stale && !token.requested()) {
      unanswered_ = outcome.answer.error();
    }
    if (one.was_sent && is_unanswered(outcome.answer)) {
      outcome.was_unanswered = true;
      outcome.was_given_up = outcome.was_given_up || is_given_up(outcome.answer);
    }
    const bool is_forbidden = outcome.was_given_up && !request.may_repeat;
    if (is_forbidden || !may_pass(outcome.answer) || token.requested()) co_return outcome;
    if (!one.was_stale) {
      if (tries++ == options_.retries) co_return outcome;
      const Result<void> slept = co_await task::sleep_for(env_, pause, token);
      if (!slept) {
        outcome.answer = fail(slept.error());
        co_return outcome;
      }
      pause = std::min(pause * 2, kPauseMax);
    }
    ++counters_.retries;
  }
}

task::Task<Client::Attempt> Client::attempt(const HttpRequest& request, task::CancelToken token) {
  const Result<void> acquired = co_await free_.acquire(1, token);
  if (!acquired) co_return Attempt{.answer = fail(acquired.error())};
  const task::Units unit(free_, 1);
  std::unique_ptr<Connection> connection;
  const bool is_kept = !idle_.empty();
  if (is_kept) {
    connection = std::move(idle_.back());
    idle_.pop_back();
  } else {
    Result<std::unique_ptr<Connection>> made = co_await connect(token);
    if (!made) co_return Attempt{.answer = fail(made.error())};
    connection = std::move(*made);
    if (token.requested()) co_return Attempt{.answer = fail(token.error())};
  }
  ++counters_.requests;
  task::Deadline deadline(env_, env_.now() + options_.timeout,
                          request.changes() ? task::CancelToken() : token);
  Result<HttpAnswer> answer = co_await connection->exchange(request, deadline.token());
  Attempt done{.answer = std::move(answer), .was_sent = true};
  done.was_stale = is_kept && !done.answer && !connection->has_heard() &&
                   (done.answer.error() == Errc::kReset || done.answer.error() == Errc::kClosed);
  if (connection->is_reusable()) idle_.push_back(std::move(connection));
  co_return done;
}

task::Task<Result<std::unique_ptr<Connection>>> Client::connect(task::CancelToken token) {
  task::Deadline deadline(env_, env_.now() + options_.timeout, token);
  ++counters_.connects;
  Result<std::unique_ptr<env::Stream>> stream =
      co_await env::connect_stream(env_, options_.server, {}, deadline.token());
  if (!stream) co_return fail(stream.error());
  co_return std::make_unique<Connection>(std::move(*stream), options_.host);
}

}  // namespace cairn::rest
