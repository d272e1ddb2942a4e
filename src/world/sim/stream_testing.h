// SPDX-License-Identifier: Apache-2.0
// For tests: two programs with one connection between them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "env/io.h"
#include "env/stream.h"
#include "task/deadline.h"
#include "task/task.h"
#include "world/sim/cluster.h"
#include "world/sim/options.h"

namespace cairn::sim {

inline task::Task<void> pause(env::Env& env, Duration duration) {
  const Result<void> slept = co_await task::sleep_for(env, duration, env.stop_token());
  if (!slept) co_return;
}

// What one side does with its stream. A lambda without captures; what it needs is in `State`.
template <class State>
using Talk = task::Task<void> (*)(env::Env&, env::Stream&, State&);

template <class State>
task::Task<void> accept_and(env::Env& env, env::ListenOptions options, State& state,
                            Talk<State> talk) {
  Result<std::unique_ptr<env::Listener>> listener =
      env.listen(env::Address::ip4(0, 0, 0, 0, 9), options);
  EXPECT_TRUE(listener.has_value());
  Result<env::Connection> connection = co_await (*listener)->accept(env.stop_token());
  if (!connection) co_return;
  const std::unique_ptr<env::Stream> stream = env.open(std::move(*connection));
  co_await talk(env, *stream, state);
}

template <class State>
task::Task<void> connect_and(env::Env& env, env::Address to, env::StreamOptions options,
                             State& state, Talk<State> talk) {
  co_await pause(env, 1_us);  // the listener is there
  Result<std::unique_ptr<env::Stream>> stream =
      co_await env::connect_stream(env, to, options, env.stop_token());
  if (!stream) co_return;
  co_await talk(env, **stream, state);
}

class StreamTest : public testing::Test {
 protected:
  // Runs both sides to their ends, in a new cluster.
  template <class State>
  void both(State& state, std::type_identity_t<Talk<State>> server,
            std::type_identity_t<Talk<State>> client) {
    Cluster cluster(cluster_options_);
    start(cluster, state, server, client);
    EXPECT_TRUE(cluster.run_until_idle(1000_s));
    for (const Node* node : cluster.nodes()) EXPECT_FALSE(node->is_running()) << node->name();
  }
  template <class State>
  void start(Cluster& cluster, State& state, std::type_identity_t<Talk<State>> server,
             std::type_identity_t<Talk<State>> client) {
    env::ListenOptions listening{.stream = options_};
    const env::Address at = cluster.node("server").address(9);
    auto serving = [listening, &state, server](env::Env& env) {
      return accept_and(env, listening, state, server);
    };
    auto calling = [at, this, &state, client](env::Env& env) {
      return connect_and(env, at, options_, state, client);
    };
    if (is_loopback_) {
      cluster.node("server").start(
          [serving, calling](env::Env& env) { return together(serving(env), calling(env)); });
    } else {
      cluster.node("server").start(serving);
      cluster.node("client").start(calling);
    }
  }

  ClusterOptions cluster_options_;
  env::StreamOptions options_;
  bool is_loopback_ = false;

 private:
  static task::Task<void> together(task::Task<void> one, task::Task<void> other) {
    co_await one;
    co_await other;
  }
};

}  // namespace cairn::sim
