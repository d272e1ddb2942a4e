// SPDX-License-Identifier: Apache-2.0
// Peers: a node's or client's ways to nodes, by their addresses; a connection each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "kv/chain/message_format.h"
#include "rpc/client.h"
#include "rpc/security.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::kv::chain {

// Calls that wait for calls further down a chain have places of their own at each connection, by
// how far down they are: chains cross each other, so otherwise all places could be held by calls
// that wait for places.
inline constexpr size_t kCallsPerHop = 24;

// One core.
class Peers {
 public:
  Peers(env::Env& env, std::shared_ptr<const rpc::Security> security)
      : env_(env), security_(std::move(security)) {}

  // The body of the reply. Errors as rpc::Client::call, and what the service refuses.
  task::Task<Result<std::string>> call(std::string address, Call method, uint32_t hop,
                                       std::string body, Duration timeout, task::CancelToken token);
  // Once, before it is destroyed.
  task::Task<void> close();

 private:
  struct Peer {
    std::unique_ptr<rpc::Client> client;
    std::map<std::pair<Call, uint32_t>, std::unique_ptr<task::Semaphore>> places;
  };

  env::Env& env_;
  const std::shared_ptr<const rpc::Security> security_;
  std::map<std::string, Peer> peers_;
  bool is_closed_ = false;
};

}  // namespace cairn::kv::chain
