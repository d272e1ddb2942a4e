// SPDX-License-Identifier: Apache-2.0
// One failure at a time, of a cluster of three nodes or more: what a client sees of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "kv/chain/client.h"
#include "kv/ring/plan.h"
#include "kv/ring/roster.h"
#include "meta/remote_store.h"
#include "tests/ring/kv_cluster.h"
#include "world/sim/cluster.h"

namespace cairn::kv {
namespace {

using chain::Client;
using chain::Command;
using chain::Found;
using chain::Outcome;
using task::Task;

std::string name_of(size_t node) { return fmt::format("kv{}", node); }

// A cluster without faults of its own, and one user, who asks one thing after the other.
class RingFailure : public testing::Test {
 protected:
  explicit RingFailure() : kv_({.nodes = 4, .nodes_first = 3, .clients = 0}) {
    kv_.start(cluster_);
    EXPECT_TRUE(settles());
  }
  bool settles() {
    return cluster_.run_until([this] { return kv_.unrest().empty(); }, 30_s);
  }

  std::string write(std::string key, Command command, Duration timeout = 8_s) {
    std::string told;
    play([&, key, command](env::Env& env) { return write_once(env, key, command, timeout, told); });
    return told;
  }
  std::string put(std::string key, std::string value) {
    return write(std::move(key), {.kind = Command::Kind::kPut, .value = std::move(value)});
  }
  void put_with_end(const std::string& key, const std::string& value, Duration life) {
    std::string told;
    play([&, life](env::Env& env) {
      const int64_t end = (env.wall_now().ns + life.ns) / 1'000'000;
      return write_once(env, key, {.kind = Command::Kind::kPut, .value = value, .expires_ms = end},
                        8_s, told);
    });
    EXPECT_EQ(told, "yes");
  }
  // key0, key1...
  void put_many(int count) {
    play([&, count](env::Env& env) { return put_all(env, count); });
  }
  std::string add(std::string key) {
    return write(std::move(key), {.kind = Command::Kind::kAdd, .amount = 1});
  }
  std::string get(std::string key, Duration timeout = 8_s) {
    std::string told;
    play([&, key](env::Env& env) { return get_once(env, key, timeout, told); });
    return told;
  }
  using Order = Task<Result<void>> (*)(meta::Store&, std::string, ring::MemberId,
                                       task::CancelToken);
  // As an operator does.
  void order(ring::MemberId member, Order what) {
    play([&, member](env::Env& env) { return order_once(env, member, what); });
  }
  void order(size_t number, Order what) { order(kv_.node(number)->replica().self(), what); }
  Task<void> add_for_ever(env::Env& env) {
    Client client(env, {.seeds = kv_.seeds()});
    while (!env.stop_token().requested()) {
      [[maybe_unused]] const Result<Outcome> added =
          co_await client.write("n", {.kind = Command::Kind::kAdd, .amount = 1}, env.stop_token());
    }
    co_await client.close();
  }
  sim::Node& node(size_t number) { return cluster_.node(name_of(number)); }

  KvCluster kv_;
  sim::Cluster cluster_;

 private:
  void play(env::Program program) {
    cluster_.node("user").start(std::move(program));
    EXPECT_TRUE(cluster_.run_until([this] { return !cluster_.node("user").is_running(); }, 60_s));
  }
  Task<void> put_all(env::Env& env, int count) {
    Client client(env, {.seeds = kv_.seeds()});
    for (int i = 0; i < count; ++i) {
      const Result<Outcome> put = co_await client.write(
          fmt::format("key{}", i), {.kind = Command::Kind::kPut, .value = "v"});
      EXPECT_TRUE(put.has_value());
    }
    co_await client.close();
  }
  Task<void> order_once(env::Env& env, ring::MemberId member, Order what) {
    const std::unique_ptr<meta::Store> store =
        meta::remote_store(env, {.servers = {kv_.store_address()}});
    const Result<void> done = co_await what(*store, "kv/", member, env.stop_token());
    EXPECT_TRUE(done.has_value());
    co_await store->close();
  }
  Task<void> write_once(env::Env& env, std::string key, Command command, Duration timeout,
                        std::string& told) {
    Client client(env, {.seeds = kv_.seeds(), .timeout = timeout, .attempt = 1_s});
    const Result<Outcome> outcome = co_await client.write(key, std::move(command));
    if (!outcome) {
      told = name(outcome.error().code());
    } else {
      told = !outcome->done ? "no" : command_text(*outcome);
    }
    co_await client.close();
  }
  static std::string command_text(const Outcome& outcome) {
    return outcome.number != 0 ? fmt::format("{}", outcome.number) : "yes";
  }
  Task<void> get_once(env::Env& env, std::string key, Duration timeout, std::string& told) {
    Client client(env, {.seeds = kv_.seeds(), .timeout = timeout, .attempt = 1_s});
    Result<Found> found = co_await client.get(key);
    told = !found ? std::string(name(found.error().code())) : found->value.value_or("none");
    co_await client.close();
  }
};

TEST_F(RingFailure, ReadsOfCleanKeysAreAnsweredByEveryReplicaAndNoneIsShipped) {
  EXPECT_EQ(put("a", "1"), "yes");
  for (int i = 0; i < 60; ++i) EXPECT_EQ(get("a"), "1");
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_GT(kv_.node(i)->replica().stats().gets, 8u);
    EXPECT_EQ(kv_.node(i)->replica().stats().shipped, 0u);
  }
}

// The whole chain in turn: head, middle, tail.
TEST_F(RingFailure, WhoeverDiesWhatWasAcknowledgedIsThereAndWritesGoOn) {
  for (size_t position = 0; position < 3; ++position) {
    SCOPED_TRACE(position);
    EXPECT_EQ(put("a", fmt::format("before {}", position)), "yes");
    const size_t victim = kv_.chain_of("a")[position];
    node(victim).kill();
    EXPECT_EQ(get("a"), fmt::format("before {}", position));
    const Time dead = cluster_.now();
    EXPECT_EQ(put("a", fmt::format("after {}", position)), "yes");
    EXPECT_LT(cluster_.now() - dead, 5_s);
    EXPECT_EQ(get("a"), fmt::format("after {}", position));
    node(victim).restart();
    EXPECT_TRUE(settles());
    EXPECT_EQ(kv_.chain_of("a").size(), 3u);
  }
}

TEST_F(RingFailure, TwoThatDieAtOnceLeaveTheThirdWithEverything) {
  EXPECT_EQ(put("a", "1"), "yes");
  const std::vector<size_t> chain = kv_.chain_of("a");
  node(chain[0]).kill();
  node(chain[2]).kill();
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(put("a", "2"), "yes");
  node(chain[0]).restart();
  node(chain[2]).restart();
  EXPECT_TRUE(settles());
  EXPECT_EQ(get("a"), "2");
}

TEST_F(RingFailure, AllThatCrashAtOnceComeBackWithWhatWasAcknowledged) {
  EXPECT_EQ(put("a", "1"), "yes");
  EXPECT_EQ(add("n"), "1");
  for (size_t i = 0; i < 3; ++i) node(i).crash();
  cluster_.run_for(5_s);
  for (size_t i = 0; i < 3; ++i) node(i).restart();
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(add("n"), "2");
  EXPECT_TRUE(settles());
}

TEST_F(RingFailure, ANodeThatStoodStillLongerThanItsLeaseShowsNothingOld) {
  EXPECT_EQ(put("a", "old"), "yes");
  for (const size_t position : {0, 1, 2}) {
    const size_t victim = kv_.chain_of("a")[position];
    node(victim).pause();
    cluster_.run_for(3_s);
    EXPECT_EQ(put("a", fmt::format("new {}", position)), "yes");
    node(victim).resume();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(get("a"), fmt::format("new {}", position));
    EXPECT_TRUE(settles());
  }
}

TEST_F(RingFailure, ANodeThatSeesNoMetadataServerAnswersNothingAfterItsLease) {
  EXPECT_EQ(put("a", "old"), "yes");
  const size_t tail = kv_.chain_of("a")[2];
  cluster_.partition(name_of(tail), "store");
  cluster_.run_for(3_s);
  EXPECT_EQ(put("a", "new"), "yes");
  const uint64_t gets = kv_.node(tail)->replica().stats().gets;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(get("a"), "new");
  EXPECT_EQ(kv_.node(tail)->replica().stats().gets, gets);
  cluster_.heal();
  EXPECT_TRUE(settles());
}

TEST_F(RingFailure, WithoutAMetadataServerKeysAreServedUntilLeasesEndAndWhenItIsBack) {
  EXPECT_EQ(put("a", "1"), "yes");
  cluster_.node("store").kill();
  EXPECT_EQ(get("a"), "1");
  cluster_.run_for(3_s);
  EXPECT_EQ(get("a", 2_s), "timed_out");
  cluster_.node("store").restart();
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(put("a", "2"), "yes");
}

// Its version is larger than all that the others have.
TEST_F(RingFailure, AWriteThatOnlyADeadHeadHadNeverHappenedWhenItIsBack) {
  for (const char* key : {"key0", "key1", "key2"}) {
    EXPECT_EQ(put(key, "1"), "yes");
    const std::vector<size_t> chain = kv_.chain_of(key);
    cluster_.partition(name_of(chain[0]), name_of(chain[1]));
    cluster_.partition(name_of(chain[0]), name_of(chain[2]));
    EXPECT_EQ(write(key, {.kind = Command::Kind::kPut, .value = "2"}, 2_s), "timed_out");
    node(chain[0]).kill();
    cluster_.run_for(3_s);
    cluster_.heal();
    EXPECT_EQ(get(key), "1");
    node(chain[0]).restart();
    EXPECT_TRUE(settles()) << kv_.unrest();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(get(key), "1");
  }
}

TEST_F(RingFailure, AStoreThatWasEmptiedIsFilledFromTheOthers) {
  for (int i = 0; i < 40; ++i) EXPECT_EQ(put(fmt::format("key{}", i), "v"), "yes");
  kv_.lose_store(cluster_, 1);
  EXPECT_TRUE(settles());
  EXPECT_EQ(get("key7"), "v");
  EXPECT_GE(kv_.stored(1), 40u);
}

TEST_F(RingFailure, OneMoreOfFourMovesAboutAFourthAndNobodyElseKeepsIt) {
  constexpr size_t kKeys = 200;
  for (size_t i = 0; i < kKeys; ++i) EXPECT_EQ(put(fmt::format("k{}", i), "v"), "yes");
  kv_.start_all(cluster_);
  EXPECT_TRUE(cluster_.run_until([this] { return kv_.stored(3) > 0; }, 10_s));
  EXPECT_TRUE(settles());
  EXPECT_TRUE(cluster_.run_until(
      [this] {
        size_t all = 0;
        for (size_t i = 0; i < 4; ++i) all += kv_.stored(i);
        return all == 3 * kKeys;
      },
      20_s));
  uint64_t copied = 0;
  for (size_t i = 0; i < 3; ++i) copied += kv_.node(i)->replica().stats().copied;
  // Three copies of each key, of which a node of four keeps a fourth.
  EXPECT_GT(kv_.stored(3), 3 * kKeys / 4 * 6 / 10);
  EXPECT_LT(kv_.stored(3), 3 * kKeys / 4 * 16 / 10);
  EXPECT_GE(copied, kv_.stored(3));
  EXPECT_EQ(get("k11"), "v");
}

TEST_F(RingFailure, ANodeThatIsSentAwayKeepsNothingUntilItIsCalledBack) {
  for (int i = 0; i < 40; ++i) EXPECT_EQ(put(fmt::format("key{}", i), "v"), "yes");
  kv_.start_all(cluster_);
  EXPECT_TRUE(cluster_.run_until([this] { return kv_.stored(3) > 0; }, 10_s));
  EXPECT_TRUE(settles());
  order(0, &ring::send_away);
  EXPECT_TRUE(
      cluster_.run_until([this] { return kv_.node(0)->has_left() && kv_.stored(0) == 0; }, 30_s));
  EXPECT_TRUE(settles()) << kv_.unrest();
  for (int i = 0; i < 40; ++i) EXPECT_EQ(get(fmt::format("key{}", i)), "v");
  // Also when it comes back, as another process.
  node(0).kill();
  node(0).restart();
  cluster_.run_for(5_s);
  EXPECT_EQ(kv_.stored(0), 0u);
  order(0, &ring::call_back);
  EXPECT_TRUE(cluster_.run_until([this] { return kv_.stored(0) > 0; }, 10_s));
  EXPECT_TRUE(settles()) << kv_.unrest();
}

// Whoever is filled empties its ranges first, and the one before it waits for that: also when all
// of them fill each other.
TEST_F(RingFailure, NodesThatFillEachOtherDoNotWaitForEachOther) {
  put_many(640);
  kv_.set_scan_time(60_ms);  // to look through them takes longer than a view lasts
  kv_.start_all(cluster_);
  for (size_t turn = 0; turn < 24; ++turn) {
    SCOPED_TRACE(turn);
    const size_t victim = turn % 3;
    order(victim, &ring::send_away);
    cluster_.run_for(Duration{static_cast<int64_t>(turn % 7) * 400'000'000});
    order(victim, &ring::call_back);
    if (turn % 4 == 3) EXPECT_TRUE(settles()) << kv_.unrest();
  }
  EXPECT_EQ(get("key7"), "v");
}

TEST_F(RingFailure, ADeadNodeThatIsSentAwayLosesItsPlaceAtOnce) {
  kv_.start_all(cluster_);
  EXPECT_TRUE(cluster_.run_until([this] { return kv_.node(3) != nullptr; }, 10_s));
  EXPECT_TRUE(cluster_.run_until(
      [this] { return !kv_.node(3)->has_left() && kv_.unrest().empty(); }, 30_s));
  const ring::MemberId dead = kv_.node(3)->replica().self();
  node(3).kill();
  const auto is_gone = [&] {
    const ring::View* view = kv_.node(0)->replica().view();
    return view->member(dead) == nullptr && ring::is_settled(*view);
  };
  cluster_.run_for(2_s);
  EXPECT_FALSE(is_gone()) << "it may come back for a while";
  order(dead, &ring::send_away);
  EXPECT_TRUE(cluster_.run_until(is_gone, 2_s));
}

TEST_F(RingFailure, AKeyWhoseEndHasComeIsNotThereAndItsHeadErasesIt) {
  const auto ended = [this] {
    uint64_t all = 0;
    for (size_t i = 0; i < 3; ++i) all += kv_.node(i)->replica().stats().ended;
    return all;
  };
  put_with_end("a", "1", 2_s);
  EXPECT_EQ(put("b", "1"), "yes");
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(ended(), 0u);
  cluster_.run_for(2_s);
  EXPECT_EQ(get("a"), "none");
  EXPECT_TRUE(cluster_.run_until([&] { return ended() == 1; }, 5_s));
  EXPECT_EQ(get("b"), "1");
  EXPECT_TRUE(settles());
  // One that is put again meanwhile stays.
  put_with_end("a", "2", 1_s);
  EXPECT_EQ(put("a", "3"), "yes");
  cluster_.run_for(3_s);
  EXPECT_EQ(get("a"), "3");
  EXPECT_EQ(ended(), 1u);
}

TEST_F(RingFailure, AClientThatDiesWhileItWritesLeavesAKeyThatWorks) {
  EXPECT_EQ(add("n"), "1");
  for (int i = 0; i < 12; ++i) {
    sim::Node& dying = cluster_.node("dying");
    dying.start([this](env::Env& env) { return add_for_ever(env); });
    cluster_.run_for(Duration{3'000'000 + i * 137'000});
    dying.kill();
    const int64_t before = std::stoll(get("n"));
    const int64_t after = std::stoll(add("n"));
    EXPECT_GE(after, before + 1);
    EXPECT_LE(after, before + 2);  // one may have been on its way
  }
}

}  // namespace
}  // namespace cairn::kv
