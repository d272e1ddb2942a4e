// SPDX-License-Identifier: Apache-2.0
// A body of test code on one simulated core, with stacks to open.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drive/stack.h"
#include "sim/cluster.h"

// ASSERT_TRUE for coroutines.
#define CO_ASSERT_TRUE(condition) \
  if (!(condition)) {             \
    ADD_FAILURE() << #condition;  \
    co_return;                    \
  }

namespace cairn::drive {

// Runs `body(env)` to its end in virtual time.
template <class Body>
void run_in_sim(sim::Cluster& cluster, Body body) {
  sim::Node& node = cluster.node("host");
  node.start([body](env::Env& env) { return body(env); });
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 10'000_s)) << cluster.report();
}
template <class Body>
void run_in_sim(Body body) {
  sim::Cluster cluster;
  run_in_sim(cluster, body);
}

// A stack that opens, or a failed test.
inline task::Task<std::unique_ptr<Drive>> must_open(env::Env& env, std::string text,
                                                    Leaves& leaves) {
  Opened drive = co_await open_stack(env, text, leaves);
  if (!drive) {
    ADD_FAILURE() << drive.error().show(text);
    co_return nullptr;
  }
  co_return std::move(*drive);
}

// Why a stack does not open; empty when it does.
inline task::Task<std::string> why_not(env::Env& env, std::string text, Leaves& leaves) {
  Opened drive = co_await open_stack(env, text, leaves);
  if (!drive) co_return drive.error().text;
  co_await (*drive)->close();
  co_return "";
}

inline std::vector<std::byte> blocks_of(uint8_t value, size_t blocks, size_t block_size = 4096) {
  return std::vector<std::byte>(blocks * block_size, std::byte{value});
}

}  // namespace cairn::drive
