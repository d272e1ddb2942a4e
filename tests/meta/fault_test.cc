// SPDX-License-Identifier: Apache-2.0
// A served store while its server and clients crash and the network between them fails, seed by
// seed: what was acknowledged is there, nothing is counted twice, and watches see the one history.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "meta/local_store.h"
#include "meta/remote_store.h"
#include "meta/server.h"
#include "meta/state.h"
#include "meta/test_keys.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/sync.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::meta_tests {
namespace {

using env::Env;
using meta::Batch;
using meta::Change;
using meta::Committed;
using meta::Entry;
using meta::Range;
using meta::Revision;
using meta::Watch;
using task::Task;

constexpr uint16_t kPort = 4431;

// The server, and the state that outlives its crashes as a medium does.
Task<void> serve(Env& env, env::Address at, meta::State& state, bool has_keys) {
  const std::unique_ptr<meta::Store> store = meta::local_store(env, state);
  meta::Server server(env, *store, {.clients = has_keys ? known_clients() : nullptr});
  if (server.listen(at)) {
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
  }
  co_await server.close();
  co_await store->close();
}

// What the outside world knows of a client; a crash does not touch it.
struct Known {
  uint64_t steps = 0;  // acknowledged
  std::vector<Change> seen;
  std::string mistake;
};

// Step n is done once, however often it is tried: it leaves a key of its own.
Task<void> take_step(meta::Store& store, std::string name, Known& known, task::CancelToken token) {
  const std::string key = "step/" + name + "/" + std::to_string(known.steps + 1);
  const Result<std::optional<Entry>> counter = co_await store.get("counter", token);
  if (!counter) co_return;
  Batch batch;
  batch.if_absent(key).put(key, "");
  if (*counter) {
    batch.if_modified("counter", (*counter)->modified);
    batch.put("counter", std::to_string(std::stoull((*counter)->value) + 1));
  } else {
    batch.if_absent("counter").put("counter", "1");
  }
  const Result<Committed> committed = co_await store.commit(std::move(batch), token);
  if (committed && (committed->done() || committed->failed == 0)) ++known.steps;
}

Task<void> count(Env& env, meta::Store& store, std::string name, Known& known) {
  while (!env.stop_token().requested()) {
    co_await take_step(store, name, known, env.stop_token());
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env, 5_ms, env.stop_token());
  }
}

// Goes on where the client of the same name left off, also after its crash.
Task<void> observe(Env& env, meta::Store& store, Known& known) {
  const Revision from = known.seen.empty() ? Revision(1) : meta::next(known.seen.back().revision);
  Result<std::unique_ptr<Watch>> watch = co_await store.watch(Range::all(), from, env.stop_token());
  if (!watch) co_return;
  while (!env.stop_token().requested()) {
    Result<std::vector<Change>> changes = co_await (*watch)->next(env.stop_token());
    if (!changes) {
      if (!env.stop_token().requested()) known.mistake = changes.error().text();
      break;
    }
    for (Change& change : *changes) known.seen.push_back(std::move(change));
  }
  co_await (*watch)->close();
}

Task<void> use(Env& env, env::Address server, std::string name, Known& known, bool has_keys) {
  const std::unique_ptr<meta::Store> store = meta::remote_store(
      env, {.servers = {server}, .security = has_keys ? as_client("w") : nullptr});
  task::Gate gate;
  gate.spawn(count(env, *store, name, known));
  co_await observe(env, *store, known);
  co_await gate.close();
  co_await store->close();
}

class CountWorkload final : public sim::Workload {
 public:
  explicit CountWorkload(bool has_keys) : has_keys_(has_keys) {}

  void start(sim::Cluster& cluster) override {
    sim::Node& server = cluster.node("server");
    const env::Address at = server.address(kPort);
    server.start([this, at](Env& env) { return serve(env, at, state_, has_keys_); });
    for (const char* name : {"a", "b"}) {
      Known& known = known_[name];
      cluster.node(name).start(
          [this, at, name, &known](Env& env) { return use(env, at, name, known, has_keys_); });
    }
  }
  uint64_t progress() const override {
    return std::min(known_.at("a").steps, known_.at("b").steps);
  }
  std::string check(sim::Cluster&) override {
    uint64_t steps = 0;
    for (const auto& [name, known] : known_) {
      if (!known.mistake.empty()) return name + " was told: " + known.mistake;
      for (uint64_t step = checked_[name] + 1; step <= known.steps; ++step) {
        const std::string key = "step/" + name + "/" + std::to_string(step);
        if (!state_.get(key, state_.revision())) return key + " was acknowledged and is not there";
      }
      checked_[name] = known.steps;
      steps += known.steps;
      const std::string odd = check_seen(name, known);
      if (!odd.empty()) return odd;
    }
    const std::optional<Entry> counter = state_.get("counter", state_.revision());
    const uint64_t counted = counter ? std::stoull(counter->value) : 0;
    // A step that was carried out and not answered yet is ahead by one, per client.
    return counted >= steps && counted <= steps + known_.size() ? "" : "the count is wrong";
  }

 private:
  // Every commit, once, in order, with what it did.
  std::string check_seen(const std::string& name, const Known& known) {
    uint64_t& at = compared_[name];
    for (; at < known.seen.size(); ++at) {
      Revision from(at + 2);
      const auto truth = state_.changes(Range::all(), from, from);
      if (!truth || truth->size() != 1 || (*truth)[0] != known.seen[at]) {
        return name + " saw another history, at change " + std::to_string(at);
      }
    }
    return "";
  }

  const bool has_keys_;
  meta::State state_;
  std::map<std::string, Known> known_;
  std::map<std::string, uint64_t> checked_;
  std::map<std::string, uint64_t> compared_;
};

std::string count_under_faults(bool has_keys) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = has_keys ? "served metadata, TLS" : "served metadata"};
  scenario.make = [has_keys] { return std::make_unique<CountWorkload>(has_keys); };
  scenario.faults.nodes = {"server", "a", "b"};
  scenario.faults.kinds = {Kind::kCrash, Kind::kKill,      Kind::kPause,   Kind::kClockStep,
                           Kind::kClog,  Kind::kPartition, Kind::kIsolate, Kind::kPartitionOneWay,
                           Kind::kReset};
  scenario.draw = [](sim::ClusterOptions& options, Rng& rng) {
    sim::draw_options(options, rng);
    options.network.faults.bit_flip = rng.bernoulli(0.3) ? rng.uniform() * 0.001 : 0;
  };
  scenario.seeds = 30;
  return run_scenario(scenario);
}

TEST(ServedStoreScenario, LosesNothingAndCountsNothingTwice) {
  EXPECT_EQ(count_under_faults(false), "");
}

TEST(ServedStoreScenario, NorThroughTls) { EXPECT_EQ(count_under_faults(true), ""); }

// Takes a lease of a second, and keeps it alive no more.
Task<void> leave_a_key(Env& env, env::Address server) {
  const std::unique_ptr<meta::Store> store = meta::remote_store(env, {.servers = {server}});
  const Result<meta::Lease> lease = co_await store->grant(1_s);
  if (lease) {
    Batch batch;
    batch.put("key", "", lease->id);
    [[maybe_unused]] const Result<Committed> put = co_await store->commit(std::move(batch));
  }
  co_await store->close();
}

// Holders could not renew their leases meanwhile, as during a restart.
TEST(ServedStore, AServerThatStoodStillGivesLeasesTheirFullTimeAgain) {
  for (const bool restarts : {false, true}) {
    SCOPED_TRACE(restarts);
    meta::State state;
    sim::Cluster cluster;
    sim::Node& server = cluster.node("server");
    const env::Address at = server.address(kPort);
    server.start([&](Env& env) { return serve(env, at, state, false); });
    cluster.node("a").start([at](Env& env) { return leave_a_key(env, at); });
    const auto is_there = [&] { return state.get("key", state.revision()).has_value(); };
    ASSERT_TRUE(cluster.run_until(is_there, 5_s));
    for (int i = 0; i < 3; ++i) {
      cluster.run_for(200_ms);
      if (restarts) {
        server.kill();
      } else {
        server.pause();
      }
      cluster.run_for(3_s);
      if (restarts) {
        server.restart();
      } else {
        server.resume();
      }
      cluster.run_for(700_ms);
      EXPECT_TRUE(is_there());
    }
    cluster.run_for(700_ms);
    EXPECT_FALSE(is_there());
  }
}

}  // namespace
}  // namespace cairn::meta_tests
