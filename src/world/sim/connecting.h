// SPDX-License-Identifier: Apache-2.0
// Connecting: a connect on its way, through question, answer, and tries again. Internal.
#pragma once

#include <cstdint>

#include "base/list.h"
#include "base/units.h"
#include "env/address.h"
#include "env/stream.h"
#include "world/sim/event_queue.h"
#include "world/sim/process.h"

namespace cairn::sim {

class Circuit;
class Core;
class Machine;
class Network;

class Connecting final : public Event, public Mortal, public ListHook<Network> {
 public:
  Connecting(Core& core, env::ConnectOp& op, Machine* to);
  ~Connecting();

  void cancel_operation();
  void die(Death death) override;
  const char* what() const override { return "connect"; }

 private:
  enum class State : uint8_t {
    kNoRoute,   // will fail when it runs
    kAsked,     // the question is on its way to the machine
    kAccepted,  // the answer is on its way back
    kRefused,
    kWaiting,  // no answer: to ask again, or give up
  };
  static const EventKind kStep;
  static void on_step(Event& event);
  void step();
  void ask();
  void arrive();
  void lose();
  void succeed();
  // Ends the operation and this object.
  template <class Outcome>
  void finish(Outcome outcome);

  Core& core_;
  Network& network_;
  env::ConnectOp& op_;
  Machine* to_;
  State state_ = State::kNoRoute;
  Circuit* circuit_ = nullptr;
  env::Address local_;
  Time asked_at_;
  Time give_up_at_;
  Duration retry_after_;
};

}  // namespace cairn::sim
