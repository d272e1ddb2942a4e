// SPDX-License-Identifier: Apache-2.0
task::Task<void> read_back(env::Env& env) { co_return; }

TEST(Disk, ReadsBackWhatWasWritten) { run_in_sim(read_back); }

task::Task<void> connect(env::Env& env, Registry& registry) { co_return; }
TEST_P(Hosts, Connect) { run(&connect); }

Task<void> Keys::are_found(env::Env& env) { co_return; }
TEST_F(Keys, AreFound) {
  run(&Keys::are_found);
}

task::Task<void> fail_to_write(env::Env& env, sim::Cluster& cluster) { co_return; }
TEST(Disk, SaysThatItIsFull) {
  sim::Cluster cluster;
  run_in_sim(cluster, [&cluster](env::Env& env) { return fail_to_write(env, cluster); });
}

TEST(Disk, IsEmptyAtFirst) {
  run_in_sim([](env::Env& env) -> task::Task<void> {
    for (int i = 0; i < 3; ++i) co_await expect_zeroes(env, "{");
  });
}
