// SPDX-License-Identifier: Apache-2.0
// RespServer: a keyspace for the clients of Redis.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "door/resp/door_state.h"
#include "door/resp/options.h"
#include "env/env.h"
#include "kv/keyspace.h"
#include "stream/reception.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "tls/context.h"
#include "tls/stream.h"

namespace cairn::door::resp {

// On one core, the keyspace's, which outlives it. Closed before it goes.
class RespServer {
 public:
  RespServer(env::Env& env, kv::Keyspace& keys, const RespOptions& options = {});
  ~RespServer();
  RespServer(const RespServer&) = delete;
  RespServer& operator=(const RespServer&) = delete;

  // Begins to accept. Gives the address with the port that was chosen. Errors as Env::listen.
  Result<env::Address> listen(const env::Address& at);
  // Stops accepting and takes no more requests; those in flight are answered, then connections end
  // in good order. Done when they are gone or `until` has passed; close() follows.
  task::Task<void> drain(Time until);
  // Stops accepting, ends every connection and waits for it.
  task::Task<void> close();

  uint64_t connections() const { return door_.client_count; }
  const DoorState& state() const { return door_; }

 private:
  struct Member;
  task::Task<void> serve(env::Connection connection);
  task::Task<void> serve_stream(env::Stream& stream, ClientState& client,
                                stream::Reception::Visitor& visitor);
  task::Task<void> serve_secure(std::unique_ptr<env::Stream> stream, ClientState& client,
                                stream::Reception::Visitor& visitor);
  // False: there is no place for it, which it is told.
  bool admit(env::Stream& stream, stream::Reception::Visitor& visitor);
  task::Task<void> stop_accepting();

  env::Env& env_;
  DoorState door_;
  std::unique_ptr<tls::Context> tls_;
  std::vector<std::unique_ptr<env::Listener>> listeners_;
  stream::Reception reception_;
  List<Member> members_;
  task::Event left_;  // a member is gone
  task::CancelSource stop_;
  task::CancelSource ending_;
  task::Gate accepting_;
  task::Gate gate_;  // of connections
};

}  // namespace cairn::door::resp
