// SPDX-License-Identifier: Apache-2.0
SIM_TEST(Disk, ReadsBackWhatWasWritten) { co_await expect_back(env); }

// Two tests share it.
task::Task<void> count(env::Env& env) { co_return; }
TEST_F(Disk, CountsWrites) { run(count); }
TEST_F(Disk, CountsWritesOfOneBlock) {
  options.block = 512;
  run(count);
}

// Something to set up, to look at or to choose.
TEST(Disk, KeepsWhatWasFlushed) {
  sim::Cluster cluster;
  run_in_sim(cluster, [](env::Env& env) -> task::Task<void> { co_await write(env); });
  EXPECT_EQ(contents(cluster), "x");
}
TEST_P(Disk, HoldsAnySize) {
  run_in_sim([](env::Env& env) { return fill(env, GetParam()); });
}

// No coroutine.
void check(int value);
TEST(Numbers, AreRight) { run(check); }
