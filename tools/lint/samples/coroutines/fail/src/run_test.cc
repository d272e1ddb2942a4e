// SPDX-License-Identifier: Apache-2.0
TEST(Run, TakesAnythingToo) {
  Options options;
  sim::run([&](env::Env& env) -> task::Task<void> { co_await accept(env, options); });
}
