// SPDX-License-Identifier: Apache-2.0
namespace cairn {

void run(env::World& world, const Options& options) {
  world.run([&](env::Env& env) -> task::Task<void> { co_await accept(env, options); });
  world.run([options](env::Env& env) mutable -> task::Task<Result<void>> {
    if (options.empty()) co_return fail(Errc::kInvalid);
    co_return Result<void>();
  });
  const auto task = [&options] -> task::Task<void> { co_await accept(options); };
  const auto outer = [] {
    return [=]<class T>(T value) -> task::Task<T> { co_return value; };
  };
}

task::Task<int> (*make(int value))() {
  return [value]() -> task::Task<int> { co_return value; };
}

}  // namespace cairn
