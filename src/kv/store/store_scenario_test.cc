// SPDX-License-Identifier: Apache-2.0
// The store against a model: many workers change keys, values expire, both logs go round and round,
// while power fails, the process dies, and the disk stalls, fails and fills up. What was
// acknowledged is there, what was erased or has expired stays gone, and changes of several keys are
// whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "drive/source.h"
#include "env/env.h"
#include "kv/store/store.h"
#include "kv/store/store_testing.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::kv::store {
namespace {

using env::Env;
using task::Task;

constexpr uint64_t kDiskSize = 4_MiB;
constexpr uint64_t kWorkers = 12;
constexpr uint64_t kKeysOfWorker = 12;
constexpr const char* kTwins[] = {"left", "right"};

// A state in which a key can be: a number, from which its value follows; 0: it is not there.
struct State {
  uint64_t number = 0;
  WallTime expires{INT64_MAX};
};

std::string value_of_number(uint64_t number) {
  Rng rng(number);
  const uint64_t kind = rng.below(100);
  const size_t size = kind < 3 ? 70'000 + rng.below(150'000) : rng.below(kind < 60 ? 300 : 4000);
  std::string value = std::to_string(number) + ":";
  value.resize(value.size() + size, static_cast<char>('a' + number % 26));
  return value;
}

// What the outside world knows; a crash does not touch it.
struct Model {
  // Each key is in one of these. The first was acknowledged; those after it failed, or nobody
  // knows.
  std::map<std::string, std::vector<State>> keys;
  std::vector<uint64_t> twins = {0};
  bool may_lose = false;  // a crash may undo what was acknowledged
  uint64_t last_number = 0;
  uint64_t progress = 0;
  uint64_t openings = 0;
  std::string wrong;

  void say(const std::string& what) {
    if (wrong.empty()) wrong = what;
  }
  std::vector<State>& states(const std::string& key) {
    std::vector<State>& states = keys[key];
    if (states.empty()) states.push_back({});
    return states;
  }
};

bool has_ended(const Error& error) { return error == Errc::kCancelled || error == Errc::kClosed; }

// One that this disk gives on its bad days, or that says that the store is full or slow.
bool is_expected(const Error& error) {
  return has_ended(error) || error == Errc::kIo || error == Errc::kNoSpace ||
         error == Errc::kTimedOut || error == Errc::kLimit;
}

// Whether what was read can be, between two times.
bool is_possible(const std::vector<State>& states, const std::optional<Entry>& entry,
                 WallTime before, WallTime after) {
  if (!entry) {
    return std::ranges::any_of(
        states, [&](const State& state) { return state.number == 0 || state.expires <= after; });
  }
  const uint64_t number = std::strtoull(entry->value.c_str(), nullptr, 10);
  const bool is_known = std::ranges::any_of(states, [&](const State& state) {
    return number != 0 && state.number == number && state.expires > before;
  });
  return is_known && entry->value == value_of_number(number);
}

struct Session {
  Env& env;
  Model& model;
  Store& store;
};

Task<void> check_key(Session& session, std::string key) {
  const WallTime before = session.env.wall_now();
  const Result<std::optional<Entry>> entry = co_await session.store.get(key);
  if (!entry) {
    if (!is_expected(entry.error())) {
      session.model.say(key + ": " + entry.error().text());
    }
    co_return;
  }
  if (!is_possible(session.model.states(key), *entry, before, session.env.wall_now())) {
    session.model.say(key + " has " +
                      (*entry ? (*entry)->value.substr(0, 20) : std::string("nothing")));
  }
}

Task<void> put_key(Session& session, std::string key, Rng& rng) {
  Model& model = session.model;
  State next{.number = ++model.last_number};
  std::optional<WallTime> expires;
  if (rng.bernoulli(0.3)) {
    const auto ms = static_cast<int64_t>(1 + rng.below(4000));
    expires = next.expires = {(session.env.wall_now().ns / 1'000'000 + ms) * 1'000'000};
  }
  std::vector<State>& states = model.states(key);
  states.push_back(next);
  const Result<void> done = co_await put(session.store, key, value_of_number(next.number), expires);
  if (done) {
    if (!model.may_lose) states = {next};
    ++model.progress;
  } else if (!is_expected(done.error())) {
    model.say("put " + key + ": " + done.error().text());
  }
}

Task<void> erase_key(Session& session, std::string key) {
  std::vector<State>& states = session.model.states(key);
  states.push_back({});
  const Result<void> done = co_await erase(session.store, key);
  if (done) {
    if (!session.model.may_lose) states = {State{}};
    ++session.model.progress;
  } else if (!is_expected(done.error())) {
    session.model.say("erase " + key + ": " + done.error().text());
  }
}

Task<void> work(Session& session, uint64_t worker, uint64_t seed) {
  Rng rng(seed);
  while (!session.env.stop_token().requested()) {
    const std::string key =
        "key" + std::to_string(worker) + "." + std::to_string(rng.below(kKeysOfWorker));
    const uint64_t what = rng.below(10);
    if (what < 3) {
      co_await check_key(session, key);
    } else if (what < 9) {
      co_await put_key(session, key, rng);
    } else {
      co_await erase_key(session, key);
    }
    const Result<void> slept = co_await task::sleep_for(
        session.env, {static_cast<int64_t>(rng.below(2'000'000))}, session.env.stop_token());
    if (!slept) co_return;
  }
}

// Two keys that are only ever changed together.
Task<void> check_twins(Session& session) {
  const std::string left = co_await value_of(session.store, kTwins[0]);
  const std::string right = co_await value_of(session.store, kTwins[1]);
  if (left.starts_with("(error") || right.starts_with("(error")) co_return;
  const uint64_t number = std::strtoull(left.c_str(), nullptr, 10);  // of "(none)": 0
  const bool known = std::ranges::find(session.model.twins, number) != session.model.twins.end() &&
                     left == (number == 0 ? "(none)" : value_of_number(number));
  if (left != right || !known) {
    session.model.say("twins: " + left.substr(0, 20) + " and " + right.substr(0, 20));
  }
}

Task<void> change_twins(Session& session) {
  Model& model = session.model;
  while (!session.env.stop_token().requested()) {
    const uint64_t number = ++model.last_number;
    model.twins.push_back(number);
    const Result<void> done =
        co_await put_all(session.store, {kTwins[0], kTwins[1]}, value_of_number(number));
    if (done) {
      if (!model.may_lose) model.twins = {number};
      ++model.progress;
    } else if (!is_expected(done.error())) {
      model.say("put twins: " + done.error().text());
    }
    co_await check_twins(session);
    const Result<void> slept =
        co_await task::sleep_for(session.env, 3_ms, session.env.stop_token());
    if (!slept) co_return;
  }
}

// All keys that the model knows, and no others.
Task<void> check_all(Session& session) {
  std::vector<std::string> keys;
  for (const auto& [key, states] : session.model.keys) keys.push_back(key);
  for (const std::string& key : keys) co_await check_key(session, key);
  co_await check_twins(session);
  uint64_t cursor = 0;
  do {
    const Result<ScanPage> page = co_await session.store.scan(cursor, 50);
    if (!page) {
      if (!is_expected(page.error())) session.model.say("scan: " + page.error().text());
      co_return;
    }
    for (const std::string& key : page->keys) {
      if (!key.starts_with("key") && key != kTwins[0] && key != kTwins[1]) {
        session.model.say("scan found " + key);
      }
    }
    cursor = page->next;
  } while (cursor != 0);
}

Task<void> use(Env& env, Model& model, Store& store) {
  Session session{env, model, store};
  co_await check_all(session);
  std::vector<Task<void>> working;
  for (uint64_t i = 0; i < kWorkers; ++i) {
    working.push_back(work(session, i, env.rng().next()));
  }
  working.push_back(change_twins(session));
  co_await task::when_all(std::move(working));
}

Task<Result<std::unique_ptr<Store>>> open_store(Env& env, drive::Source& source,
                                                StoreOptions options) {
  Result<std::unique_ptr<drive::Drive>> drive = source.open(env);
  if (!drive) co_return fail(drive.error());
  Result<std::unique_ptr<Store>> store = co_await Store::open(env, std::move(*drive), options);
  if (store || store.error() != Errc::kNotFound) co_return store;
  drive = source.open(env);
  if (!drive) co_return fail(drive.error());
  const Result<void> made = co_await format(env, **drive, {.may_format = true});
  co_await (*drive)->close();
  if (!made) co_return fail(made.error());
  drive = source.open(env);
  if (!drive) co_return fail(drive.error());
  store = co_await Store::open(env, std::move(*drive), options);
  co_return store;
}

Task<void> run_host(Env& env, Model& model, StoreOptions options, uint32_t block_size) {
  drive::Spec spec{.path = "d", .size = kDiskSize * block_size / 512, .block_size = block_size};
  spec.kind = drive::Spec::Kind::kFile;
  while (!env.stop_token().requested()) {
    Result<std::unique_ptr<drive::Source>> source = drive::Source::make(env, spec);
    if (source) {
      Result<std::unique_ptr<Store>> store = co_await open_store(env, **source, options);
      if (store) {
        ++model.openings;
        co_await use(env, model, **store);
        co_await (*store)->close();
        store = nullptr;
      } else if (!is_expected(store.error())) {
        model.say("open: " + store.error().text());
      }
      co_await (*source)->close(env);
    }
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env, 20_ms, env.stop_token());
  }
}

class StoreWorkload final : public sim::Workload {
 public:
  explicit StoreWorkload(const StoreOptions& options) : options_(options) {
    model_.may_lose = options.durability != Durability::kCommit;
  }
  void start(sim::Cluster& cluster) override {
    const uint32_t block_size = cluster.options().disk.block_size;
    cluster.node("host").start(
        [this, block_size](Env& env) { return run_host(env, model_, options_, block_size); });
  }
  uint64_t progress() const override { return model_.progress; }
  std::string check(sim::Cluster&) override { return model_.wrong; }
  std::string check_healed(sim::Cluster&) override { return model_.wrong; }

 private:
  const StoreOptions options_;
  Model model_;
};

sim::Scenario scenario_of(const char* name, const StoreOptions& options) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = name};
  scenario.make = [options] { return std::make_unique<StoreWorkload>(options); };
  scenario.options.disk.block_size = 512;
  scenario.faults.nodes = {"host"};
  scenario.faults.disks = {{.node = "host", .path = "d", .size = 0}};
  scenario.faults.kinds = {Kind::kCrash,    Kind::kCrash,          Kind::kCrash,
                           Kind::kKill,     Kind::kPause,          Kind::kDiskStall,
                           Kind::kDiskFull, Kind::kDiskReadErrors, Kind::kDiskWriteErrors};
  scenario.draw = [](sim::ClusterOptions& drawn, Rng& rng) {
    sim::draw_options(drawn, rng);
    drawn.disk.faults.latent = 0;  // there is no other copy
    drawn.disk.faults.read_error = rng.bernoulli(0.5) ? rng.uniform() * 0.02 : 0;
    drawn.disk.faults.write_error = rng.bernoulli(0.5) ? rng.uniform() * 0.02 : 0;
    drawn.disk.faults.flush_error = rng.bernoulli(0.5) ? rng.uniform() * 0.2 : 0;
  };
  scenario.fault_phase = 6_s;
  scenario.healed_phase = 20_s;
  return scenario;
}

TEST(StoreScenario, WhatWasAcknowledgedIsThereAfterEveryCrash) {
  sim::Scenario scenario = scenario_of("store", {.checkpoint_every = 64});
  scenario.seeds = 100;
  EXPECT_EQ(run_scenario(scenario), "");
}

TEST(StoreScenario, LargerBlocksAndFewCheckpointsChangeNothing) {
  sim::Scenario scenario = scenario_of("store of 4 KiB blocks", {});
  scenario.options.disk.block_size = 4096;
  scenario.seeds = 20;
  EXPECT_EQ(run_scenario(scenario), "");
}

// An older state is found then, but no damage, no half of a change, and nothing that never was.
TEST(StoreScenario, WhoDoesNotWaitLosesTheEndAndNothingElse) {
  for (const Durability durability : {Durability::kInterval, Durability::kNone}) {
    sim::Scenario scenario =
        scenario_of("store without waiting",
                    {.durability = durability, .sync_interval = 100_ms, .checkpoint_every = 64});
    scenario.draw = [](sim::ClusterOptions& drawn, Rng& rng) {
      sim::draw_options(drawn, rng);
      drawn.disk.faults.write_error = rng.bernoulli(0.5) ? rng.uniform() * 0.02 : 0;
    };
    scenario.seeds = 10;
    EXPECT_EQ(run_scenario(scenario), "");
  }
}

// Power fails when the disk has done so many requests, from the first of making the store on.
TEST(StoreScenario, PowerFailsAfterEachRequest) {
  for (uint64_t requests = 1; requests <= 250; ++requests) {
    Model model;
    sim::Cluster cluster({.seed = requests, .disk = {.block_size = 512}});
    sim::Node& node = cluster.node("host");
    uint64_t done = 0;
    node.disk("d").set_judge([&done](const env::DiskOp::Request&) -> Result<void> {
      ++done;
      return {};
    });
    node.start([&model](Env& env) { return run_host(env, model, {.checkpoint_every = 8}, 512); });
    ASSERT_TRUE(cluster.run_until([&] { return done >= requests; }, 100_s)) << requests;
    node.crash();
    node.restart();
    const uint64_t openings = model.openings;
    ASSERT_TRUE(cluster.run_until([&] { return model.openings > openings; }, 100_s)) << requests;
    const uint64_t progress = model.progress;
    ASSERT_TRUE(cluster.run_until([&] { return model.progress > progress + 20; }, 100_s));
    ASSERT_EQ(model.wrong, "") << requests;
    node.stop();
    ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 100_s)) << requests;
    ASSERT_EQ(model.wrong, "") << requests;
  }
}

}  // namespace
}  // namespace cairn::kv::store
