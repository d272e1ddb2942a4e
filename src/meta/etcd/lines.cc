// SPDX-License-Identifier: Apache-2.0
#include "meta/etcd/lines.h"

#include <utility>

#include "base/check.h"
#include "env/io.h"
#include "rpc/failover.h"
#include "task/deadline.h"
#include "task/either.h"

namespace cairn::meta::etcd {

Lines::Lines(env::Env& env, LinesOptions options, Make make)
    : env_(env),
      options_(std::move(options)),
      make_(std::move(make)),
      free_(options_.connections_max) {
  CHECK(!options_.servers.empty(), "there is a server to ask");
}

void Lines::leave(const env::Address& server) {
  if (options_.servers[current_] != server) return;
  current_ = (current_ + 1) % options_.servers.size();
  idle_.clear();
}

task::Task<void> Lines::pause(size_t failures, task::CancelToken token) {
  const Duration pause = rpc::failover_pause(failures, options_.servers.size());
  if (pause == Duration()) co_return;
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env_, pause, token);
}

task::Task<Result<std::unique_ptr<env::Stream>>> Lines::connect(env::Address& server,
                                                                task::CancelToken token) {
  server = options_.servers[current_];
  task::Deadline deadline(env_, env_.now() + options_.connect_timeout, token);
  Result<std::unique_ptr<env::Stream>> stream =
      co_await env::connect_stream(env_, server, {}, deadline.token());
  if (stream && options_.security != nullptr) {
    rpc::Insecure plain{.stream = std::move(*stream),
                        .server = server,
                        .lingering = lingering_,
                        .timeout = options_.connect_timeout};
    stream = co_await options_.security->secure(env_, std::move(plain), token);
  }
  if (!stream) leave(server);
  co_return stream;
}

void Lines::note_refusal() const {
  if (!options_.on_refused || options_.security == nullptr) return;
  const std::string who = options_.security->who();
  if (!who.empty()) options_.on_refused(who);
}

task::Task<Lines::Tried> Lines::attempt(const Question& question, task::CancelToken token) {
  const Result<void> acquired = co_await free_.acquire(1, token);
  if (!acquired) co_return Tried{.reply = fail(acquired.error())};
  const task::Units unit(free_, 1);
  std::unique_ptr<Line> line;
  env::Address server = options_.servers[current_];
  if (!idle_.empty()) {
    line = std::move(idle_.back());
    idle_.pop_back();
  } else {
    Result<std::unique_ptr<env::Stream>> stream = co_await connect(server, token);
    if (!stream) co_return Tried{.reply = fail(stream.error())};
    line = make_(std::move(*stream), server);
    if (token.requested()) co_return Tried{.reply = fail(token.error())};
  }
  const Time until = question.repeatable ? env_.now() + question.attempt_timeout : Time::never();
  task::Deadline deadline(env_, until, token);
  Result<Reply> reply = co_await line->ask(question, deadline.token());
  if (!reply && !token.requested()) leave(server);
  if (reply && line->is_reusable() && server == options_.servers[current_]) {
    idle_.push_back(std::move(line));
  }
  co_return Tried{.reply = std::move(reply), .was_sent = true};
}

task::Task<Result<Reply>> Lines::ask_inside(const Question& question, task::CancelToken token) {
  task::Either both(token, stop_.token());
  task::Deadline deadline(env_, env_.now() + options_.timeout, both.token());
  bool was_sent = false;
  size_t refusals = 0;
  const char* hung_up = nullptr;  // how one did last
  for (size_t failures = 1;; ++failures) {
    Tried tried = co_await attempt(question, deadline.token());
    was_sent = was_sent || tried.was_sent;
    if (tried.reply) co_return std::move(tried.reply);
    if (both.token().requested()) co_return fail(both.token().error());
    refusals = rpc::is_refusal(tried.reply.error()) ? refusals + 1 : 0;
    if (refusals == rpc::kRefusalsMax * options_.servers.size() ||
        (refusals > 0 && was_sent && !question.repeatable)) {
      note_refusal();
      co_return std::move(tried.reply);
    }
    if (was_sent && !question.repeatable) co_return std::move(tried.reply);
    if (tried.reply.error() == Errc::kReset) hung_up = tried.reply.error().what();
    co_await pause(failures, deadline.token());
    if (both.token().requested()) co_return fail(both.token().error());
    if (!deadline.expired()) continue;
    if (rpc::is_strange(tried.reply.error())) co_return std::move(tried.reply);
    const Errc code = was_sent ? Errc::kTimedOut : Errc::kUnreachable;
    if (hung_up != nullptr) co_return fail(code, hung_up);
    co_return fail(code, was_sent ? "no metadata server answered in time"
                                  : "no metadata server can be reached");
  }
}

task::Task<Result<Reply>> Lines::ask(Question question, task::CancelToken token) {
  if (token.requested()) co_return fail(token.error());
  if (!gate_.enter()) co_return fail(Errc::kClosed, "the metadata store was closed");
  Result<Reply> reply = co_await ask_inside(question, token);
  gate_.leave();
  co_return reply;
}

task::Task<void> Lines::close() {
  stop_.request(Errc::kClosed);
  co_await gate_.close();
  idle_.clear();
  co_await lingering_.close();
}

}  // namespace cairn::meta::etcd
