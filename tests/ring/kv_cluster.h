// SPDX-License-Identifier: Apache-2.0
// A simulated cluster of replicated keys: a metadata server, nodes and clients, all of which fail;
// what clients were told, and what the nodes hold in the end.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "env/env.h"
#include "kv/chain/client.h"
#include "kv/chain/node.h"
#include "meta/state.h"
#include "task/task.h"
#include "testing/kv/history.h"
#include "tests/ring/test_keyspace.h"
#include "world/sim/cluster.h"

namespace cairn::kv {

struct KvClusterOptions {
  size_t nodes = 5;        // machines
  size_t nodes_first = 3;  // of them there from the beginning; the others join
  size_t clients = 3;
  size_t keys = 3;
  bool loses_stores = false;
  bool leaves = false;
  bool on_disk = false;           // nodes have real stores on simulated disks
  chain::ReplicaOptions replica;  // of each node
  bool scans = false;             // nodes list their keys again and again
  bool proxies = false;           // clients are inside the first nodes, and use their keyspaces
};

class KvCluster {
 public:
  explicit KvCluster(const KvClusterOptions& options)
      : options_(options),
        media_(options.nodes),
        running_(options.nodes),
        dumps_(options.nodes),
        listed_(options.nodes) {}

  void start(sim::Cluster& cluster);
  // Clients stop writing, and read each key once more.
  void rest() { is_resting_ = true; }
  bool has_rested() const { return rested_.size() == options_.clients; }

  // One thing that faults of the world do not do: a node joins or leaves, a store is lost.
  void disturb(sim::Cluster& cluster, Rng& rng);
  void start_all(sim::Cluster& cluster);

  // The numbers of the nodes that keep a key, head first; empty: nobody knows.
  std::vector<size_t> chain_of(const std::string& key) const;
  // A store and its node die; the node comes back with an empty one.
  void lose_store(sim::Cluster& cluster, size_t number);
  void set_scan_time(Duration time) {
    for (TestMedium& each : media_) each.scan_time = time;
  }
  // What a node takes for each read, more than before.
  void set_get_time(size_t number, Duration time) { media_[number].get_time = time; }
  // How many keys of users a store has, besides the one that says which member it is.
  size_t stored(size_t number) const {
    const size_t all = media_[number].entries.size();
    return all == 0 ? 0 : all - 1;
  }
  const chain::Node* node(size_t number) const { return running_[number].node; }
  std::vector<std::string> seeds() const;
  // Of the metadata server.
  env::Address store_address() const;

  // The keys that a node told in its last whole scan, if it was without damage; and how many scans
  // were whole.
  const std::set<std::string>& listed(size_t number) const { return listed_[number].keys; }
  uint64_t scans(size_t number) const { return listed_[number].scans; }

  uint64_t ended() const { return ended_; }
  // What keeps the nodes from being equal and at rest; empty: nothing.
  std::string unrest() const;
  // What is wrong with the history.
  std::string judge() const;

 private:
  struct Running {
    chain::Node* node = nullptr;
    bool is_started = false;
    bool leaves = false;
  };

  task::Task<void> run_store(env::Env& env, env::Address at);
  task::Task<void> run_node(env::Env& env, size_t number);
  task::Task<void> run_node_on_disk(env::Env& env, size_t number);
  task::Task<void> serve_node(env::Env& env, size_t number, Keyspace& keys);
  // Again and again, once clients rest: what a node's store holds.
  task::Task<void> dump(env::Env& env, size_t number, Keyspace& keys, task::CancelToken token);
  task::Task<void> list_keys(env::Env& env, size_t number, chain::Replica& replica,
                             task::CancelToken token);
  std::string stored_value(size_t number, const std::string& stored) const;
  task::Task<void> run_client(env::Env& env, size_t number);
  task::Task<void> run_proxy(env::Env& env, size_t number, chain::Replica& replica);
  task::Task<void> live(env::Env& env, chain::Client& client, Keyspace* keys, size_t number);
  // `keys`: if not null, changes go through it.
  task::Task<void> one_op(env::Env& env, chain::Client& client, Keyspace* keys, size_t number,
                          size_t key, bool only_reads);
  void start_node(sim::Cluster& cluster, size_t number);
  bool is_settled() const;
  const ring::View* newest_view() const;
  // The numbers of nodes by the members that they are.
  std::map<ring::MemberId, size_t> places(const ring::View& view) const;

  const KvClusterOptions options_;
  meta::State state_;
  std::vector<TestMedium> media_;
  std::vector<Running> running_;
  std::vector<std::map<std::string, std::string>> dumps_;
  struct Listed {
    std::set<std::string> keys;
    uint64_t scans = 0;
  };
  std::vector<Listed> listed_;
  sim::Cluster* cluster_ = nullptr;
  std::map<std::string, std::vector<KeyOp>> ops_;
  std::map<size_t, uint64_t> versions_;  // seen by clients, by key
  uint64_t last_value_ = 0;
  uint64_t ended_ = 0;
  bool is_resting_ = false;
  std::set<size_t> rested_;
};

}  // namespace cairn::kv
