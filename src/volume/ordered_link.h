// SPDX-License-Identifier: Apache-2.0
// OrderedLink: one call about the map at a time, so that answers are believed in the order in which
// the arbiter gave them: an older one would bring back legs that others have by now. After an
// answer that was lost the next turn begins (Session), so that the call is not carried out later.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "task/sync.h"
#include "volume/arbiter_link.h"

namespace cairn::volume {

// `below` outlives it.
class OrderedLink final : public ArbiterLink {
 public:
  explicit OrderedLink(ArbiterLink& below) : below_(below) {}

  task::Task<Result<Opened>> open(OpenArgs args, task::CancelToken token) override {
    return below_.open(std::move(args), token);
  }
  task::Task<Result<Renewed>> renew(Session session, task::CancelToken token) override {
    session.turn = session_turn_;
    return below_.renew(session, token);
  }
  task::Task<Result<void>> close(Session session, bool is_clean, task::CancelToken token) override {
    session.turn = session_turn_;
    return below_.close(session, is_clean, token);
  }
  task::Task<Result<std::vector<Mapping>>> table(Session session, uint32_t first,
                                                 task::CancelToken token) override {
    const Result<void> turn = co_await turn_.acquire(1, token);
    if (!turn) co_return fail(kNotAsked);
    const task::Units units(turn_, 1);
    session.turn = session_turn_;
    Result<std::vector<Mapping>> answer = co_await below_.table(session, first, token);
    if (!answer) note(answer.error());
    co_return answer;
  }
  task::Task<Result<std::vector<Mapping>>> allocate(Session session, std::vector<uint32_t> extents,
                                                    task::CancelToken token) override {
    const Result<void> turn = co_await turn_.acquire(1, token);
    if (!turn) co_return fail(kNotAsked);
    const task::Units units(turn_, 1);
    session.turn = session_turn_;
    Result<std::vector<Mapping>> answer =
        co_await below_.allocate(session, std::move(extents), token);
    if (!answer) note(answer.error());
    co_return answer;
  }
  task::Task<Result<void>> release(Session session, std::vector<uint32_t> extents,
                                   task::CancelToken token) override {
    const Result<void> turn = co_await turn_.acquire(1, token);
    if (!turn) co_return fail(kNotAsked);
    const task::Units units(turn_, 1);
    session.turn = session_turn_;
    Result<void> answer = co_await below_.release(session, std::move(extents), token);
    if (!answer) note(answer.error());
    co_return answer;
  }
  task::Task<Result<std::vector<Mapping>>> report(Session session, std::vector<LegReport> legs,
                                                  task::CancelToken token) override {
    const Result<void> turn = co_await turn_.acquire(1, token);
    if (!turn) co_return fail(kNotAsked);
    const task::Units units(turn_, 1);
    session.turn = session_turn_;
    Result<std::vector<Mapping>> answer = co_await below_.report(session, std::move(legs), token);
    if (!answer) note(answer.error());
    co_return answer;
  }
  task::Task<Result<Mapping>> relocate(Session session, Relocation what,
                                       task::CancelToken token) override {
    const Result<void> turn = co_await turn_.acquire(1, token);
    if (!turn) co_return fail(kNotAsked);
    const task::Units units(turn_, 1);
    session.turn = session_turn_;
    Result<Mapping> answer = co_await below_.relocate(session, what, token);
    if (!answer) note(answer.error());
    co_return answer;
  }
  task::Task<Result<std::vector<CopyPlace>>> begin_copies(Session session,
                                                          std::vector<uint32_t> extents,
                                                          task::CancelToken token) override {
    const Result<void> turn = co_await turn_.acquire(1, token);
    if (!turn) co_return fail(kNotAsked);
    const task::Units units(turn_, 1);
    session.turn = session_turn_;
    Result<std::vector<CopyPlace>> answer =
        co_await below_.begin_copies(session, std::move(extents), token);
    if (!answer) note(answer.error());
    co_return answer;
  }
  task::Task<Result<std::vector<Mapping>>> end_copies(Session session, std::vector<CopyEnd> copies,
                                                      task::CancelToken token) override {
    const Result<void> turn = co_await turn_.acquire(1, token);
    if (!turn) co_return fail(kNotAsked);
    const task::Units units(turn_, 1);
    session.turn = session_turn_;
    Result<std::vector<Mapping>> answer =
        co_await below_.end_copies(session, std::move(copies), token);
    if (!answer) note(answer.error());
    co_return answer;
  }
  // Changes nothing, and takes its time.
  task::Task<Result<Asked>> asked(Session session, Duration wait,
                                  task::CancelToken token) override {
    session.turn = session_turn_;
    return below_.asked(session, wait, token);
  }
  task::Task<Result<void>> freeze(Session session, std::string snapshot, bool is_ready,
                                  task::CancelToken token) override {
    const Result<void> turn = co_await turn_.acquire(1, token);
    if (!turn) co_return fail(kNotAsked);
    const task::Units units(turn_, 1);
    session.turn = session_turn_;
    Result<void> answer = co_await below_.freeze(session, std::move(snapshot), is_ready, token);
    if (!answer) note(answer.error());
    co_return answer;
  }

 private:
  static constexpr Error kNotAsked{Errc::kUnreachable, "an arbiter was not asked in time"};
  void note(const Error& error) {
    const bool is_lost =
        error == Errc::kTimedOut || error == Errc::kReset || error == Errc::kCancelled;
    session_turn_ += is_lost ? 1 : 0;
  }

  ArbiterLink& below_;
  task::Semaphore turn_{1};
  uint64_t session_turn_ = 1;
};

}  // namespace cairn::volume
