// SPDX-License-Identifier: Apache-2.0
#include "tests/volume/mail_link.h"

#include <optional>

namespace cairn::volume_tests {

using task::CancelToken;
using task::Task;
using volume::ArbiterLink;

namespace {

constexpr Duration kLook = 300_us;
constexpr Duration kAnswerLimit = 1_s;

template <class T>
struct Answer {
  std::optional<Result<T>> result;
};

template <class T>
Task<void> run_call(std::function<Task<Result<T>>(ArbiterLink&, CancelToken)> call,
                    std::shared_ptr<Answer<T>> answer, ArbiterLink& arbiter, CancelToken token) {
  Result<T> result = co_await call(arbiter, token);
  answer->result.emplace(std::move(result));
}

Task<void> answer_one(env::Env& env, Mail& mail, std::shared_ptr<Letter> letter,
                      ArbiterLink& arbiter, CancelToken stop) {
  co_await letter->run(arbiter, stop);
  // What a process that is dying found out nobody hears.
  if (stop.requested() || env.rng().bernoulli(mail.loss)) co_return;
  letter->is_answered = true;
}

}  // namespace

Task<void> answer_letters(env::Env& env, Mail& mail, std::string name, ArbiterLink& arbiter,
                          CancelToken stop) {
  task::Gate gate;
  std::deque<std::shared_ptr<Letter>>& box = mail.boxes[name];
  box.clear();
  while (!stop.requested()) {
    while (!box.empty()) {
      const std::shared_ptr<Letter> letter = box.front();
      box.pop_front();
      if (!env.rng().bernoulli(mail.loss)) {
        gate.spawn(answer_one(env, mail, letter, arbiter, stop));
      }
    }
    const Result<void> slept = co_await task::sleep_for(env, kLook, stop);
    if (!slept) break;
  }
  co_await gate.close();
}

template <class T>
Task<Result<T>> MailLink::ask(std::function<Task<Result<T>>(ArbiterLink&, CancelToken)> call,
                              CancelToken token) {
  bool may_be_done = false;
  for (size_t tries = 0; tries < arbiters_.size(); ++tries) {
    const std::string& name = arbiters_[next_ % arbiters_.size()];
    const auto answer = std::make_shared<Answer<T>>();
    const auto letter = std::make_shared<Letter>();
    letter->run = [call, answer](ArbiterLink& arbiter, CancelToken stop) {
      return run_call<T>(call, answer, arbiter, stop);
    };
    mail_.boxes[name].push_back(letter);
    task::Deadline deadline(env_, env_.now() + kAnswerLimit, token);
    while (!letter->is_answered) {
      const Result<void> slept = co_await task::sleep_for(env_, kLook, deadline.token());
      if (!slept) break;
    }
    const bool is_elsewhere =
        letter->is_answered && !*answer->result && answer->result->error() == Errc::kUnreachable;
    if (letter->is_answered && !is_elsewhere) co_return *answer->result;
    may_be_done |= !letter->is_answered;
    ++next_;
    if (token.requested()) co_return fail(token.error());
  }
  if (may_be_done) co_return fail(Errc::kTimedOut, "an arbiter did not answer");
  co_return fail(Errc::kUnreachable, "no arbiter leads");
}

template <class T, class... Params, class... Args>
Task<Result<T>> MailLink::send(Task<Result<T>> (ArbiterLink::*call)(Params...), CancelToken token,
                               Args... args) {
  return ask<T>([call, args...](ArbiterLink& arbiter,
                                CancelToken stop) { return (arbiter.*call)(args..., stop); },
                token);
}

Task<Result<volume::Opened>> MailLink::open(volume::OpenArgs args, CancelToken token) {
  return send(&ArbiterLink::open, token, args);
}

Task<Result<volume::Renewed>> MailLink::renew(volume::Session session, CancelToken token) {
  return send(&ArbiterLink::renew, token, session);
}

Task<Result<void>> MailLink::close(volume::Session session, bool is_clean, CancelToken token) {
  return send(&ArbiterLink::close, token, session, is_clean);
}

Task<Result<std::vector<volume::Mapping>>> MailLink::table(volume::Session session, uint32_t first,
                                                           CancelToken token) {
  return send(&ArbiterLink::table, token, session, first);
}

Task<Result<std::vector<volume::Mapping>>> MailLink::allocate(volume::Session session,
                                                              std::vector<uint32_t> extents,
                                                              CancelToken token) {
  return send(&ArbiterLink::allocate, token, session, extents);
}

Task<Result<void>> MailLink::release(volume::Session session, std::vector<uint32_t> extents,
                                     CancelToken token) {
  return send(&ArbiterLink::release, token, session, extents);
}

Task<Result<std::vector<volume::Mapping>>> MailLink::report(volume::Session session,
                                                            std::vector<volume::LegReport> legs,
                                                            CancelToken token) {
  return send(&ArbiterLink::report, token, session, legs);
}

Task<Result<volume::Mapping>> MailLink::relocate(volume::Session session, volume::Relocation what,
                                                 CancelToken token) {
  return send(&ArbiterLink::relocate, token, session, what);
}

Task<Result<std::vector<volume::CopyPlace>>> MailLink::begin_copies(volume::Session session,
                                                                    std::vector<uint32_t> extents,
                                                                    CancelToken token) {
  return send(&ArbiterLink::begin_copies, token, session, extents);
}

Task<Result<std::vector<volume::Mapping>>> MailLink::end_copies(volume::Session session,
                                                                std::vector<volume::CopyEnd> copies,
                                                                CancelToken token) {
  return send(&ArbiterLink::end_copies, token, session, copies);
}

Task<Result<volume::Asked>> MailLink::asked(volume::Session session, Duration wait,
                                            CancelToken token) {
  return send(&ArbiterLink::asked, token, session, wait);
}

Task<Result<void>> MailLink::freeze(volume::Session session, std::string snapshot, bool is_ready,
                                    CancelToken token) {
  return send(&ArbiterLink::freeze, token, session, snapshot, is_ready);
}

}  // namespace cairn::volume_tests
