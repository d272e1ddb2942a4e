// SPDX-License-Identifier: Apache-2.0
// VfioUserServer: devices for virtual machines, each at a socket of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "door/vfio_user/device.h"
#include "door/vfio_user/session.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::door::vfio_user {

// Made and used on one core. A device has one client at a time, and who comes meanwhile is told so
// (EBUSY). Who comes while the last one leaves waits for its turn, for 10 s at most: a VM that is
// started again comes before the device has ended what it did for it. A client's session runs on
// the device's core; devices are spread over all cores.
class VfioUserServer {
 public:
  // What devices are made of outlives the server.
  VfioUserServer(env::Env& env, SessionOptions options);
  ~VfioUserServer();
  VfioUserServer(const VfioUserServer&) = delete;
  VfioUserServer& operator=(const VfioUserServer&) = delete;

  // Begins to accept. Errors as Env::listen; kInvalid: no local address; kExists: the name is
  // taken; kUnsupported: this world shares nothing.
  Result<void> add(std::string name, const env::Address& at, DeviceMaker maker,
                   Pace pace = Pace::kAdaptive);
  // Asks the client to give the device back and waits for that, until `until` at most; then the
  // device is gone, with its socket. kNotFound.
  task::Task<Result<void>> remove(std::string_view name, Time until);
  // No remove() is under way from here on.
  //
  // Stops accepting and ends every session in order: what devices do is finished first. Done when
  // they are gone or `until` has passed; close() follows.
  task::Task<void> drain(Time until);
  // Stops accepting and ends every session soon.
  task::Task<void> close();

  uint64_t clients() const { return clients_; }

 private:
  class PerCore;
  struct Endpoint;
  task::Task<void> accept_loop(Endpoint& endpoint);
  task::Task<void> admit(Endpoint& endpoint, env::Connection connection);
  // False: another client has the device, and stays.
  task::Task<bool> take_turn(Endpoint& endpoint);
  task::Task<void> serve(Endpoint& endpoint, env::Connection connection);
  task::Task<void> turn_away(std::string device, env::Connection connection);
  task::Task<void> stop_accepting(Endpoint& endpoint);
  task::Task<void> tell(Endpoint& endpoint, void (*visit)(Session&));
  // Until the device's client, or all clients, have gone.
  task::Task<void> await_departure(const Endpoint* endpoint, Time until);
  PerCore& on(env::Env& there);

  env::Env& env_;
  const SessionOptions options_;
  std::vector<std::unique_ptr<PerCore>> cores_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  uint32_t next_core_ = 0;
  uint64_t clients_ = 0;
  task::Event left_;  // a client has gone
};

}  // namespace cairn::door::vfio_user
