// SPDX-License-Identifier: Apache-2.0
// KvNode: a store's part in a cluster as a process has it, from its metadata store to the keyspace
// that its doors serve.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/problem.h"
#include "base/units.h"
#include "config/settings.h"
#include "env/address.h"
#include "env/env.h"
#include "kv/chain/client.h"
#include "kv/chain/cluster_keyspace.h"
#include "kv/chain/node.h"
#include "kv/keyspace.h"
#include "kv/ring/view.h"
#include "meta/store.h"
#include "rpc/client_keys.h"
#include "rpc/security.h"
#include "server/common/stranger_log.h"
#include "server/open/store_uri.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::server {

// Below which keys of a metadata store a cluster is.
inline constexpr std::string_view kKvPrefix = "kv/";
inline constexpr uint16_t kKvNodePort = 4450;

struct KvNodeOptions {
  StoreUri meta;
  env::Address listen;  // for other nodes, who find it there
  std::string name;     // for people
  std::string resp;     // where clients of Redis find it; empty: nowhere
  kv::ring::Location location;
  uint32_t replicas = 3;  // of the first view; the ring begins when so many nodes are there
  Duration lease = 3_s;
  std::map<std::string, uint32_t, std::less<>> weights;  // of tenants that do not have 1
  // Who may call this node; none: everybody who reaches it.
  std::shared_ptr<const rpc::ClientKeys> clients;
  // Towards other nodes; none: not encrypted.
  std::shared_ptr<const rpc::Security> security;
};

// One core. The store, which nobody else uses, outlives it.
class KvNode {
 public:
  using Log = std::function<void(config::LogLevel, std::string_view)>;
  // It serves other nodes, and joins the ring. The Problem: the metadata store does not open, the
  // store holds keys of no cluster, or the address cannot be listened at.
  static task::Task<Attempt<std::unique_ptr<KvNode>>> start(env::Env& env, kv::Keyspace& store,
                                                            KvNodeOptions options, Log log);
  // For start().
  KvNode(env::Env& env, std::unique_ptr<meta::Store> meta, kv::Keyspace& store,
         kv::ring::MemberId self, const KvNodeOptions& options, Log log);

  // All keys of the cluster.
  kv::Keyspace& keys() { return keys_; }
  kv::ring::MemberId self() const { return self_; }
  // Null: it knows none yet.
  std::shared_ptr<const kv::ring::View> view() const { return node_.replica().shared_view(); }

  // Whether that view may be relied on: the node's lease is good.
  bool is_current() const { return node_.membership().is_held(); }
  // What it has done as a replica, by names.
  std::vector<std::pair<std::string, uint64_t>> counters() const;

  // Gives its place up for the time being. Once, before it is destroyed.
  task::Task<void> close();

 private:
  kv::chain::NodeOptions node_options(const KvNodeOptions& options);
  task::Task<void> run();
  void tell_damage(std::string_view key, std::optional<kv::ring::MemberId> from) const;
  // Says what becomes of it in the ring.
  task::Task<void> tell();

  env::Env& env_;
  const Log log_;
  StrangerLog strangers_;
  const std::unique_ptr<meta::Store> meta_;
  const kv::ring::MemberId self_;
  kv::chain::Node node_;
  kv::chain::Client client_;
  kv::chain::ClusterKeyspace keys_;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::server
