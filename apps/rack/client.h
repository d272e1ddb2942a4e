// SPDX-License-Identifier: Apache-2.0
// What the commands that ask a rack's metadata have in common.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "apps/common/errand.h"
#include "base/problem.h"
#include "env/env.h"
#include "meta/store.h"
#include "server/open/store.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/task.h"

namespace CLI {
class App;
}

namespace cairn::apps {

class RackClient {
 public:
  // Declares an option for the store, --timeout and --json.
  explicit RackClient(CLI::App& app, const char* option = "--rack [META]");

  bool json() const { return json_; }

  // Runs `errand` with the store that --rack names, until it is done or the time is over.
  template <class T>
  using Errand = std::function<task::Task<Attempt<T>>(env::Env&, meta::Store&, task::CancelToken)>;
  template <class T>
  Attempt<T> run(const Errand<T>& errand) const {
    const Attempt<server::StoreUri> uri = server::StoreUri::parse(store_);
    if (!uri) return std::unexpected(uri.error());
    return run_errand<T>([this, &uri, &errand](env::Env& env) {
      return with_store<T>(env, *uri, errand, Duration::from_seconds(timeout_s_));
    });
  }

 private:
  template <class T>
  static task::Task<Attempt<T>> with_store(env::Env& env, server::StoreUri uri,
                                           const Errand<T>& errand, Duration timeout) {
    std::string who;  // was refused
    Attempt<std::unique_ptr<meta::Store>> store = co_await open_store(
        env, std::move(uri), [&who](std::string refused) { who = std::move(refused); });
    if (!store) co_return std::unexpected(store.error());
    Attempt<T> outcome = refuse("nothing was asked");
    {
      task::Deadline deadline(env, env.now() + timeout, env.stop_token());
      outcome = co_await errand(env, **store, deadline.token());
    }
    co_await (*store)->close();
    if (!outcome && !who.empty()) {
      co_return refuse(outcome.error().text + " (this client is " + who + ")");
    }
    co_return outcome;
  }

  std::string store_{server::kDefaultStore};
  double timeout_s_ = 30;
  bool json_ = false;
};

}  // namespace cairn::apps
