// SPDX-License-Identifier: Apache-2.0
// SimListener: a backlog of connections that wait to be accepted. Internal.
#pragma once

#include <cstddef>

#include "base/list.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "world/sim/fifo.h"
#include "world/sim/process.h"

namespace cairn::sim {

class Core;
class Endpoint;
class Network;

class SimListener final : public env::Listener, public Mortal, public ListHook<SimListener> {
 public:
  SimListener(Core& core, env::Address at, const env::ListenOptions& options);
  ~SimListener() override;

  env::Address local() const override { return local_; }
  const env::ListenOptions& options() const { return options_; }
  bool serves(const env::Address& at) const;
  // Whether both could not listen at the same time.
  bool conflicts_with(const env::Address& at, const env::ListenOptions& options) const;

  // False when the backlog is full.
  bool has_room() const { return backlog_.size() < static_cast<size_t>(options_.backlog); }
  void add(Endpoint& endpoint);

  void die(Death death) override;
  const char* what() const override { return "listener"; }

 private:
  void start_accept(env::AcceptOp& op) override;
  void cancel_accept(env::AcceptOp& op) override;

  Core& core_;
  Network& network_;
  env::Address local_;
  env::ListenOptions options_;
  Fifo<Endpoint*> backlog_;
  env::AcceptOp* accepting_ = nullptr;
  bool is_dead_ = false;
};

}  // namespace cairn::sim
