// SPDX-License-Identifier: Apache-2.0
#include "tests/ring/kv_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "kv/chain/cluster_keyspace.h"
#include "kv/ring/plan.h"
#include "kv/store/store.h"
#include "meta/local_store.h"
#include "meta/remote_store.h"
#include "meta/server.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "testing/stack/stacks.h"

namespace cairn::kv {

using chain::Command;
using task::Task;

namespace {

constexpr uint16_t kStorePort = 4431;
constexpr uint16_t kNodePort = 4450;

std::string name_of(size_t node) { return fmt::format("kv{}", node); }
std::string key_of(size_t key) { return fmt::format("key{}", key); }

Task<void> nap(env::Env& env, Duration time) {
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, time, env.stop_token());
}

KeyOp::Kind kind_of(Command::Kind kind) {
  switch (kind) {
    case Command::Kind::kPut:
      return KeyOp::Kind::kPut;
    case Command::Kind::kErase:
      return KeyOp::Kind::kDelete;
    case Command::Kind::kPutNew:
      return KeyOp::Kind::kPutNew;
    case Command::Kind::kAdd:
      return KeyOp::Kind::kAdd;
    case Command::Kind::kReplace:
      return KeyOp::Kind::kReplace;
    case Command::Kind::kSwap:
    case Command::Kind::kSwapErase:
      break;  // those of keyspaces, which note what they are for
  }
  return KeyOp::Kind::kGet;
}

// What a command does, decided by who asks for it.
class OpChange final : public Change {
 public:
  explicit OpChange(const Command& command)
      : Change(command.kind == Command::Kind::kPut ? Needs::kNothing : Needs::kValues),
        command_(command) {}

  Result<void> decide(std::span<const std::optional<Entry>> now, std::span<Edit> edits) override {
    const std::optional<Entry>& entry = now[0];
    outcome = {};
    std::string value = command_.value;
    switch (command_.kind) {
      case Command::Kind::kPut:
        outcome.done = true;
        break;
      case Command::Kind::kErase:
        outcome.done = entry.has_value();
        edits[0].kind = Edit::Kind::kErase;
        return {};
      case Command::Kind::kPutNew:
        outcome.done = !entry;
        break;
      case Command::Kind::kReplace:
        outcome.done = entry && entry->meta.version == command_.version;
        break;
      default:
        outcome.done = true;
        outcome.number = (entry ? std::stoll(entry->value) : 0) + command_.amount;
        value = fmt::format("{}", outcome.number);
    }
    if (outcome.done) edits[0] = {.kind = Edit::Kind::kPut, .value = value, .expires = {}};
    return {};
  }
  chain::Outcome outcome;

 private:
  const Command command_;
};

}  // namespace

void KvCluster::start(sim::Cluster& cluster) {
  cluster_ = &cluster;
  const env::Address store = cluster.node("store").address(kStorePort);
  cluster.node("store").start([this, store](env::Env& env) { return run_store(env, store); });
  for (size_t i = 0; i < options_.nodes; ++i) cluster.node(name_of(i));
  for (size_t i = 0; i < options_.nodes_first; ++i) start_node(cluster, i);
  for (size_t i = 0; i < options_.clients && !options_.proxies; ++i) {
    cluster.node(fmt::format("client{}", i)).start([this, i](env::Env& env) {
      return run_client(env, i);
    });
  }
}

void KvCluster::start_node(sim::Cluster& cluster, size_t number) {
  running_[number].is_started = true;
  cluster.node(name_of(number)).start([this, number](env::Env& env) {
    return run_node(env, number);
  });
}

void KvCluster::start_all(sim::Cluster& cluster) {
  for (size_t i = 0; i < options_.nodes; ++i) {
    if (!running_[i].is_started) start_node(cluster, i);
  }
}

Task<void> KvCluster::run_store(env::Env& env, env::Address at) {
  const std::unique_ptr<meta::Store> store = meta::local_store(env, state_);
  meta::Server server(env, *store);
  if (server.listen(at)) {
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
  }
  co_await server.close();
  co_await store->close();
}

Task<void> KvCluster::run_node(env::Env& env, size_t number) {
  if (options_.on_disk) co_return co_await run_node_on_disk(env, number);
  TestKeyspace keys(env, media_[number]);
  co_await serve_node(env, number, keys);
}

Task<void> KvCluster::run_node_on_disk(env::Env& env, size_t number) {
  drive::SourceLeaves leaves;
  const std::string text = "file:d,size=4M,block=512";
  drive::Opened drive = co_await drive::open_stack(env, text, leaves);
  if (!drive) co_return;
  // A crash while it is made leaves none, or one.
  [[maybe_unused]] const Result<void> made = co_await store::format(env, **drive, {});
  Result<std::unique_ptr<store::Store>> opened =
      co_await store::Store::open(env, std::move(*drive), {});
  if (opened) {
    co_await serve_node(env, number, **opened);
    co_await (*opened)->close();
  }
  leaves.close();
}

Task<void> KvCluster::dump(env::Env& env, size_t number, Keyspace& keys, task::CancelToken token) {
  while (!token.requested()) {
    std::map<std::string, std::string> all;
    for (size_t key = 0; key < options_.keys && is_resting_ && options_.on_disk; ++key) {
      const std::string stored = chain::stored_key(key_of(key));
      const Result<std::optional<Entry>> entry = co_await keys.get(stored);
      if (entry && *entry) all[stored] = (*entry)->value;
    }
    dumps_[number] = std::move(all);
    [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, 100_ms, token);
  }
}

Task<void> KvCluster::list_keys(env::Env& env, size_t number, chain::Replica& replica,
                                task::CancelToken token) {
  while (!token.requested()) {
    std::set<std::string> keys;
    uint64_t cursor = 0;
    bool is_whole = true;
    do {
      Result<ScanPage> page = co_await replica.scan(cursor, 10);
      is_whole = is_whole && page && page->unreadable == 0;
      if (!page) break;
      for (std::string& key : page->keys) keys.insert(std::move(key));
      cursor = page->next;
    } while (cursor != 0);
    if (is_whole) listed_[number].keys = std::move(keys);
    listed_[number].scans += is_whole ? 1 : 0;
    [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, 200_ms, token);
  }
}

std::string KvCluster::stored_value(size_t number, const std::string& stored) const {
  if (options_.on_disk) {
    const auto found = dumps_[number].find(stored);
    return found == dumps_[number].end() ? "" : found->second;
  }
  const auto found = media_[number].entries.find({TestKeyspace::place(stored), stored});
  return found == media_[number].entries.end() ? "" : found->second.value;
}

Task<void> KvCluster::serve_node(env::Env& env, size_t number, Keyspace& keys) {
  const Result<ring::MemberId> self = co_await chain::identity(env, keys);
  if (!self) co_return;
  const std::unique_ptr<meta::Store> store = meta::remote_store(
      env, {.servers = {store_address()}, .timeout = 2_s, .connect_timeout = 500_ms});
  chain::NodeOptions options{.address = cluster_->node(name_of(number)).address(kNodePort)};
  options.location.machine = name_of(number);
  options.replica = options_.replica;
  options.membership.lease = 1_s;
  options.controller.name = name_of(number);
  options.controller.election_ttl = 1_s;
  options.controller.absence.give_up_after = 4_s;
  options.controller.plan = {.replicas = 3, .members_min = options_.nodes_first};
  chain::Node node(env, keys, *store, *self, options);
  running_[number].node = &node;
  if (running_[number].leaves) node.leave();
  task::CancelSource stop;
  task::Gate gate;
  gate.spawn(dump(env, number, keys, stop.token()));
  if (options_.scans) gate.spawn(list_keys(env, number, node.replica(), stop.token()));
  if (options_.proxies && number < options_.clients) {
    gate.spawn(run_proxy(env, number, node.replica()));
  }
  [[maybe_unused]] const Result<void> served = co_await node.run(env.stop_token());
  running_[number].node = nullptr;
  stop.request();
  co_await gate.close();
  co_await store->close();
}

Task<void> KvCluster::run_client(env::Env& env, size_t number) {
  chain::ClientOptions options{.timeout = 4_s, .attempt = 1_s};
  options.seeds = seeds();
  chain::Client client(env, options);
  co_await live(env, client, nullptr, number);
  co_await client.close();
}

Task<void> KvCluster::run_proxy(env::Env& env, size_t number, chain::Replica& replica) {
  chain::ClientOptions options{.timeout = 4_s, .attempt = 1_s, .local = &replica};
  options.seeds = seeds();
  chain::Client client(env, options);
  chain::ClusterKeyspace keys(env, client, replica, 4_s);
  co_await live(env, client, &keys, number);
  co_await client.close();
}

Task<void> KvCluster::live(env::Env& env, chain::Client& client, Keyspace* keys, size_t number) {
  while (!env.stop_token().requested() && !is_resting_) {
    co_await one_op(env, client, keys, number, env.rng().below(options_.keys), false);
    co_await nap(env, Duration{static_cast<int64_t>(env.rng().below(20'000'000))});
  }
  for (size_t key = 0; key < options_.keys && !env.stop_token().requested(); ++key) {
    co_await one_op(env, client, keys, number, key, true);
  }
  if (is_resting_ && !env.stop_token().requested()) rested_.insert(number);
}

Task<void> KvCluster::one_op(env::Env& env, chain::Client& client, Keyspace* keys, size_t number,
                             size_t key, bool only_reads) {
  std::vector<KeyOp>& ops = ops_[key_of(key)];
  if (only_reads || env.rng().bernoulli(0.5)) {
    KeyOp op{.kind = KeyOp::Kind::kGet, .client = number, .began = cluster_->now().ns};
    const Result<chain::Found> found = co_await client.get(key_of(key));
    if (!found || env.stop_token().requested()) co_return;
    op.ended = cluster_->now().ns;
    op.done = found->value.has_value();
    op.value = found->value.value_or("");
    op.version = op.done ? found->version : 0;
    versions_[key] = found->version;
    ops.push_back(std::move(op));
    ++ended_;
    co_return;
  }
  Command command{.kind = static_cast<Command::Kind>(env.rng().below(5))};
  if (env.rng().bernoulli(0.4)) command.kind = Command::Kind::kPut;
  // Nobody knows a version yet, and 0 is none to histories.
  if (command.kind == Command::Kind::kReplace && versions_[key] == 0) {
    command.kind = Command::Kind::kPutNew;
  }
  if (command.kind == Command::Kind::kAdd) {
    command.amount = 1;
  } else if (command.kind != Command::Kind::kErase) {
    command.value = fmt::format("{}", ++last_value_ * 1000);
  }
  if (command.kind == Command::Kind::kReplace) command.version = versions_[key];
  const size_t at = ops.size();
  // Noted before it is sent: whoever crashes meanwhile knows nothing.
  ops.push_back({.kind = kind_of(command.kind),
                 .client = number,
                 .value = command.value,
                 .amount = command.amount,
                 .expected = command.version,
                 .began = cluster_->now().ns});
  Result<chain::Outcome> outcome = chain::Outcome{};
  if (keys != nullptr && env.rng().bernoulli(0.8)) {
    OpChange change(command);
    const std::string name = key_of(key);
    const std::string_view view = name;
    const Result<void> done = co_await keys->transact({&view, 1}, change);
    outcome = done ? Result<chain::Outcome>(change.outcome) : fail(done.error());
  } else {
    outcome = co_await client.write(key_of(key), std::move(command));
  }
  if (!outcome || env.stop_token().requested()) co_return;
  KeyOp& op = ops_[key_of(key)][at];
  op.ended = cluster_->now().ns;
  op.done = outcome->done;
  op.was_error = outcome->is_no_number;
  op.number = outcome->number;
  op.version = outcome->version;
  ++ended_;
}

void KvCluster::disturb(sim::Cluster& cluster, Rng& rng) {
  const size_t number = rng.below(options_.nodes);
  Running& running = running_[number];
  const uint64_t what = rng.below(100);
  if (what < 8 && !running.is_started) {
    start_node(cluster, number);
  } else if (what < 10 && options_.leaves && running.node != nullptr && number >= 3) {
    running.leaves = true;
    running.node->leave();
  } else if (what < 12 && options_.loses_stores && is_settled() && running.node != nullptr) {
    // Everything has its replicas: one store may go.
    const sim::Node& node = cluster.node(name_of(number));
    if (!node.is_down() && !node.is_paused()) lose_store(cluster, number);
  }
}

void KvCluster::lose_store(sim::Cluster& cluster, size_t number) {
  cluster.node(name_of(number)).kill();
  media_[number] = {};
  cluster.node(name_of(number)).restart();
}

bool KvCluster::is_settled() const { return unrest().empty(); }

env::Address KvCluster::store_address() const {
  return cluster_->node("store").address(kStorePort);
}

std::vector<std::string> KvCluster::seeds() const {
  std::vector<std::string> seeds;
  for (size_t i = 0; i < options_.nodes; ++i) {
    seeds.push_back(cluster_->node(name_of(i)).address(kNodePort).text());
  }
  return seeds;
}

const ring::View* KvCluster::newest_view() const {
  const ring::View* newest = nullptr;
  for (const Running& each : running_) {
    if (each.node == nullptr) continue;
    const ring::View* view = each.node->replica().view();
    if (view != nullptr && (newest == nullptr || view->epoch > newest->epoch)) newest = view;
  }
  return newest;
}

std::map<ring::MemberId, size_t> KvCluster::places(const ring::View& view) const {
  std::map<ring::MemberId, size_t> places;
  for (size_t i = 0; i < running_.size(); ++i) {
    for (const ring::Member& member : view.members) {
      const bool is_it = running_[i].node != nullptr &&
                         member.incarnation == running_[i].node->membership().incarnation();
      if (is_it) places[member.id] = i;
    }
  }
  return places;
}

std::vector<size_t> KvCluster::chain_of(const std::string& key) const {
  std::vector<size_t> numbers;
  const ring::View* view = newest_view();
  if (view == nullptr) return numbers;
  const std::map<ring::MemberId, size_t> nodes = places(*view);
  for (const ring::Replica& each : view->range_of(ring::hash_of(key)).chain) {
    if (nodes.contains(each.member)) numbers.push_back(nodes.at(each.member));
  }
  return numbers;
}

std::string KvCluster::unrest() const {
  const ring::View* newest = newest_view();
  if (newest == nullptr) return "nobody has a view";
  if (!ring::is_settled(*newest)) return "chains are not what they should be";
  for (size_t i = 0; i < running_.size(); ++i) {
    const chain::Node* node = running_[i].node;
    if (node == nullptr || node->has_left()) continue;
    if (node->replica().view() == nullptr) return "a node has no view";
    if (node->replica().view()->epoch != newest->epoch) return "a node has an older view";
    if (node->replica().dirty_keys() > 0) return "a node has dirty keys";
    if (!node->membership().is_held()) return "a node has no lease";
  }
  const std::map<ring::MemberId, size_t> nodes = places(*newest);
  for (const ring::Member& member : newest->members) {
    if (!nodes.contains(member.id)) return "a member is not there";
  }
  for (const ring::RingRange& range : newest->ranges) {
    for (size_t key = 0; key < options_.keys; ++key) {
      const std::string stored = chain::stored_key(key_of(key));
      if (&newest->range_of(ring::hash_of(key_of(key))) != &range) continue;
      std::optional<std::string> first;
      for (const ring::Replica& each : range.chain) {
        const std::string value = stored_value(nodes.at(each.member), stored);
        if (value.empty() && options_.on_disk) return "a node was not looked at yet";
        if (first && *first != value) return fmt::format("replicas of {} differ", key_of(key));
        first = value;
      }
    }
  }
  return "";
}

std::string KvCluster::judge() const {
  History history;
  for (const auto& [key, ops] : ops_) {
    for (const KeyOp& op : ops) history.add(key, op);
  }
  const HistoryVerdict verdict = history.check({.versions_grow = true, .steps_max = 3'000'000});
  if (verdict.kind == HistoryVerdict::Kind::kGood) return "";
  return (verdict.kind == HistoryVerdict::Kind::kBad ? "no order explains " : "too hard: ") +
         verdict.text;
}

}  // namespace cairn::kv
