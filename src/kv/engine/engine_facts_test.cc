// SPDX-License-Identifier: Apache-2.0
// An engine over a Keyspace is one too.
#include "kv/engine/engine.h"
#include "kv/keyspace_testing.h"
#include "kv/memory_keyspace.h"
#include "testing/sim_test.h"

namespace cairn::kv::engine {
namespace {

task::Task<void> run_with_turns(env::Env& env, KeyspaceBody body) {
  MemoryKeyspace below(env);
  Scheduler scheduler(env, {.tokens_min = 16, .tokens_max = 64});
  Engine engine(env, below, scheduler, 1, {});
  co_await body(env, engine);
  EXPECT_EQ(scheduler.active(), 0U);
}

struct WithTurns {
  static void run(KeyspaceBody body) {
    sim::run_in_sim([body](env::Env& env) { return run_with_turns(env, body); });
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(WithTurns, KeyspaceFacts, WithTurns);

}  // namespace
}  // namespace cairn::kv::engine
