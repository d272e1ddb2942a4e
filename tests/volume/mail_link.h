// SPDX-License-Identifier: Apache-2.0
// How simulated clients reach simulated arbiters on other nodes: by letters in boxes that both
// sides look into. Letters and answers get lost, and an arbiter that dies answers none.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "env/env.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/task.h"
#include "volume/arbiter_link.h"

namespace cairn::volume_tests {

// A call on its way: what is to be done at the arbiter, and whether it was.
struct Letter {
  std::function<task::Task<void>(volume::ArbiterLink&, task::CancelToken)> run;
  bool is_answered = false;
};

// By arbiters' names; outlives all nodes.
struct Mail {
  std::map<std::string, std::deque<std::shared_ptr<Letter>>> boxes;
  double loss = 0;  // the probability, of each letter and of each answer
};

// Answers the letters of one arbiter until the token is requested.
task::Task<void> answer_letters(env::Env& env, Mail& mail, std::string name,
                                volume::ArbiterLink& arbiter, task::CancelToken stop);

// What a client has: asks one arbiter, and another when that one does not lead or answer.
class MailLink final : public volume::ArbiterLink {
 public:
  MailLink(env::Env& env, Mail& mail, std::vector<std::string> arbiters)
      : env_(env), mail_(mail), arbiters_(std::move(arbiters)) {}

  task::Task<Result<volume::Opened>> open(volume::OpenArgs args, task::CancelToken token) override;
  task::Task<Result<volume::Renewed>> renew(volume::Session session,
                                            task::CancelToken token) override;
  task::Task<Result<void>> close(volume::Session session, bool is_clean,
                                 task::CancelToken token) override;
  task::Task<Result<std::vector<volume::Mapping>>> table(volume::Session session, uint32_t first,
                                                         task::CancelToken token) override;
  task::Task<Result<std::vector<volume::Mapping>>> allocate(volume::Session session,
                                                            std::vector<uint32_t> extents,
                                                            task::CancelToken token) override;
  task::Task<Result<void>> release(volume::Session session, std::vector<uint32_t> extents,
                                   task::CancelToken token) override;
  task::Task<Result<std::vector<volume::Mapping>>> report(volume::Session session,
                                                          std::vector<volume::LegReport> legs,
                                                          task::CancelToken token) override;
  task::Task<Result<volume::Mapping>> relocate(volume::Session session, volume::Relocation what,
                                               task::CancelToken token) override;
  task::Task<Result<std::vector<volume::CopyPlace>>> begin_copies(volume::Session session,
                                                                  std::vector<uint32_t> extents,
                                                                  task::CancelToken token) override;
  task::Task<Result<std::vector<volume::Mapping>>> end_copies(volume::Session session,
                                                              std::vector<volume::CopyEnd> copies,
                                                              task::CancelToken token) override;
  task::Task<Result<volume::Asked>> asked(volume::Session session, Duration wait,
                                          task::CancelToken token) override;
  task::Task<Result<void>> freeze(volume::Session session, std::string snapshot, bool is_ready,
                                  task::CancelToken token) override;

 private:
  // A call at an arbiter; its answer, or why there is none.
  template <class T, class... Params, class... Args>
  task::Task<Result<T>> send(task::Task<Result<T>> (volume::ArbiterLink::*call)(Params...),
                             task::CancelToken token, Args... args);
  // `call` is run at an arbiter, with what it captured; its answer, or why there is none.
  template <class T>
  task::Task<Result<T>> ask(
      std::function<task::Task<Result<T>>(volume::ArbiterLink&, task::CancelToken)> call,
      task::CancelToken token);

  env::Env& env_;
  Mail& mail_;
  const std::vector<std::string> arbiters_;
  size_t next_ = 0;
};

}  // namespace cairn::volume_tests
