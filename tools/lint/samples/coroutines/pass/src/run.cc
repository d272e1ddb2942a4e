// SPDX-License-Identifier: Apache-2.0
// A lambda that captures makes a task; those that are one capture nothing.
namespace cairn {

task::Task<void> serve(env::Env& env, const Options& options) { co_await accept(env, options); }

void run(env::World& world, const Options& options) {
  world.run([&](env::Env& env) { return serve(env, options); });
  world.run([](env::Env& env) -> task::Task<void> { co_await accept(env, {}); });
  struct Run {
    static task::Task<void> once(env::Env& env) { co_return; }
  };
  const auto inside = [&options] {
    struct Steps {
      static task::Task<int> all() { co_return 1; }
    };
    const auto plain = [](int value) -> task::Task<int> { co_return value; };
    return Steps::all();
  };
  int table[3] = {1, 2, 3};
  const auto& [first, second] = pair_of(table[0]);
  [[maybe_unused]] const char* text = "[&] { co_return; }";  // [&] { co_return; }
}

}  // namespace cairn
