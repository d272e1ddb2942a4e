// SPDX-License-Identifier: Apache-2.0
TEST(Run, TakesAnything) {
  Options options;
  sim::run([&](env::Env& env) { return accept_all(env, options); });
}
