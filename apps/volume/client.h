// SPDX-License-Identifier: Apache-2.0
// What the commands that ask an arbiter have in common.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "apps/common/errand.h"
#include "arbiter/remote_arbiter.h"
#include "base/problem.h"
#include "config/json_text.h"
#include "env/env.h"
#include "server/open/arbiter_uri.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/task.h"

namespace CLI {
class App;
}

namespace cairn::apps {

class ArbiterClient {
 public:
  // Declares --arbiter, --timeout, with what it is when nobody says, and --json.
  explicit ArbiterClient(CLI::App& app, int timeout_s = 60);

  bool json() const { return json_; }
  const server::ArbiterUri& uri() const { return uri_; }
  Duration timeout() const { return Duration::from_seconds(timeout_s_); }
  // Prints it as JSON if that was asked for, else `text`.
  void print(const nlohmann::ordered_json& json, std::string_view text) const;

  // Runs `errand` with a connection to the arbiters, until it is done or the time is over.
  using Arbiter = arbiter::RemoteArbiter;
  template <class T>
  using Errand = std::function<task::Task<Attempt<T>>(env::Env&, Arbiter&, task::CancelToken)>;
  template <class T>
  Attempt<T> run(const Errand<T>& errand) const {
    return run_errand<T>([this, &errand](env::Env& env) { return run_at<T>(env, uri_, errand); });
  }
  // The same with some of the arbiters.
  template <class T>
  task::Task<Attempt<T>> run_at(env::Env& env, server::ArbiterUri uri,
                                const Errand<T>& errand) const {
    Attempt<std::unique_ptr<Arbiter>> arbiter = make_remote_arbiter(env, uri);
    if (!arbiter) co_return std::unexpected(arbiter.error());
    Attempt<T> outcome = refuse("nothing was asked");
    {
      task::Deadline deadline(env, env.now() + Duration::from_seconds(timeout_s_),
                              env.stop_token());
      outcome = co_await errand(env, **arbiter, deadline.token());
    }
    co_await (*arbiter)->disconnect();
    co_return outcome;
  }

  // One request and its answer. The Problem: the arbiter's own words, or that none answers.
  template <class T>
  Attempt<T> ask(const arbiter::CallArgs& request) const {
    return run<T>([this, &request](env::Env&, Arbiter& arbiter, task::CancelToken token) {
      return ask_one<T>(arbiter, request, token);
    });
  }
  template <class T>
  task::Task<Attempt<T>> ask_one(Arbiter& arbiter, arbiter::CallArgs request,
                                 task::CancelToken token) const {
    Arbiter::Said<T> said = co_await arbiter.ask<T>(std::move(request), token);
    if (!said) co_return std::unexpected(problem(said.error()));
    if constexpr (std::is_void_v<T>) {
      co_return Attempt<void>();
    } else {
      co_return std::move(*said);
    }
  }
  Problem problem(const arbiter::Refusal& refusal) const;

 private:
  server::ArbiterUri uri_;
  double timeout_s_;
  bool json_ = false;
};

}  // namespace cairn::apps
