// SPDX-License-Identifier: Apache-2.0
#include "world/rocks/rocks_store.h"

#include <span>
#include <utility>

#include "meta/journal.h"
#include "meta/local_store.h"
#include "world/posix/core.h"
#include "world/posix/worker.h"
#include "world/rocks/database.h"

namespace cairn::rocks {

namespace {

// What the worker's thread is asked to do. Values, so that they live in the frame of Worker::run.
struct Open {
  Database& database;
  const std::string& folder;
  meta::State& state;
  Time now;
  Result<void> operator()() { return database.open(folder, state, now); }
};
struct Write {
  Database& database;
  std::span<const meta::Mutation> mutations;
  Result<void> operator()() { return database.write(mutations); }
};
struct Close {
  Database& database;
  void operator()() { database.close(); }
};

class RocksJournal final : public meta::Journal {
 public:
  explicit RocksJournal(posix::CoreEnv& core) : worker_(core) {}

  task::Task<Result<void>> open(const std::string& folder, meta::State& state, Time now) {
    return worker_.run(Open{database_, folder, state, now});
  }
  task::Task<Result<void>> write(std::span<const meta::Mutation> mutations) override {
    return worker_.run(Write{database_, mutations});
  }
  task::Task<void> close() override { return worker_.run(Close{database_}); }

 private:
  Database database_;
  posix::Worker worker_;
};

}  // namespace

task::Task<Result<std::unique_ptr<meta::Store>>> open_rocks_store(env::Env& env,
                                                                  RocksOptions options) {
  auto* core = dynamic_cast<posix::CoreEnv*>(&env);
  if (core == nullptr) {
    co_return fail(Errc::kUnsupported, "a metadata folder needs a real world: serve a state here");
  }
  auto state = std::make_unique<meta::State>(options.limits);
  auto journal = std::make_unique<RocksJournal>(*core);
  const Result<void> opened = co_await journal->open(options.folder, *state, env.now());
  if (!opened) {
    co_await journal->close();
    co_return fail(opened.error());
  }
  co_return meta::local_store(env, std::move(state), std::move(journal));
}

}  // namespace cairn::rocks
