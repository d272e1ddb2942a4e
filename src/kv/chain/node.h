// SPDX-License-Identifier: Apache-2.0
// Node: a store's part in a replicated cluster, from its lease to its last reply.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "kv/chain/replica.h"
#include "kv/chain/service.h"
#include "kv/keyspace.h"
#include "kv/ring/controller.h"
#include "kv/ring/membership.h"
#include "meta/store.h"
#include "rpc/security.h"
#include "rpc/server.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::kv::chain {

struct NodeOptions {
  env::Address address;  // where it serves, and others find it
  std::string name;      // for people
  std::string resp;      // as ring::Member has it
  ring::Location location;
  uint32_t drives = 1;
  ring::MembershipOptions membership;
  ring::ControllerOptions controller;
  ReplicaOptions replica;
  rpc::ServerOptions server;
  std::shared_ptr<const rpc::Security> security;  // towards other nodes; none: not encrypted
};

// Which member a store is. Drawn and kept in it when it is empty: a store that was emptied is
// another member. kExists: it holds keys that are none of a cluster's. Errors of the store.
task::Task<Result<ring::MemberId>> identity(env::Env& env, Keyspace& store);

// One core. The keyspace, which nobody else uses, and the metadata store outlive it.
class Node {
 public:
  Node(env::Env& env, Keyspace& keys, meta::Store& store, ring::MemberId self,
       const NodeOptions& options);

  // Others can reach it from now on. Before run(), which does it if nobody has. Errors of
  // Env::listen.
  Result<void> listen();
  // Serves until the token is requested. Once. Errors of listen().
  task::Task<Result<void>> run(task::CancelToken token);
  // Asks for others in its place; has_left() when none of its keys is needed any more.
  void leave() { membership_.set_leaving(); }
  bool has_left() const;

  Replica& replica() { return replica_; }
  const Replica& replica() const { return replica_; }
  const ring::Membership& membership() const { return membership_; }

 private:
  const ring::MemberId self_;
  const NodeOptions options_;
  Peers peers_;
  Replica replica_;
  ring::Membership membership_;
  ring::Controller controller_;
  Service service_;
  rpc::Server server_;
  bool is_listening_ = false;
};

}  // namespace cairn::kv::chain
