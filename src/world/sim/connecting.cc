// SPDX-License-Identifier: Apache-2.0
#include "world/sim/connecting.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "env/stream.h"
#include "world/sim/circuit.h"
#include "world/sim/core.h"
#include "world/sim/event_queue.h"
#include "world/sim/listener.h"
#include "world/sim/machine.h"
#include "world/sim/network.h"
#include "world/sim/process.h"

namespace cairn::sim {

const EventKind Connecting::kStep("net.connect", &Connecting::on_step);

Connecting::Connecting(Core& core, env::ConnectOp& op, Machine* to)
    : Event(kStep, core.machine().origin()),
      core_(core),
      network_(core.machine().network()),
      op_(op),
      to_(to),
      retry_after_(network_.options().syn_retry) {
  op.note = std::bit_cast<uintptr_t>(this);
  join(core.process());
  const Time now = network_.world().now();
  give_up_at_ = now + network_.options().connect_timeout;
  if (to_ == nullptr) {
    network_.world().schedule(*this, now);
    return;
  }
  if (op.to().family != env::Address::Family::kLocal) {
    local_ = to_ == &core.machine() ? op.to() : core.machine().address(0);
    local_.port = network_.pick_port(core.machine());
  } else {
    local_.family = env::Address::Family::kLocal;
  }
  ask();
}

Connecting::~Connecting() {
  if (circuit_ != nullptr) network_.discard(*circuit_);
}

void Connecting::ask() {
  state_ = State::kAsked;
  asked_at_ = network_.world().now();
  network_.world().schedule(*this, network_.arrival_time(network_.link(core_.machine(), *to_), 0));
}

void Connecting::on_step(Event& event) { static_cast<Connecting&>(event).step(); }

void Connecting::step() {
  Link* back = to_ == nullptr ? nullptr : &network_.link(*to_, core_.machine());
  switch (state_) {
    case State::kNoRoute:
      return finish(fail(Error::from_errno(EHOSTUNREACH, "connect")));
    case State::kAsked:
      return arrive();
    case State::kAccepted:
      return network_.is_lost(*back) ? lose() : succeed();
    case State::kRefused:
      if (network_.is_lost(*back)) return lose();
      return finish(fail(Error::from_errno(ECONNREFUSED, "connect")));
    case State::kWaiting:
      if (network_.world().now() < give_up_at_) return ask();
      return finish(fail(Error::from_errno(ETIMEDOUT, "connect")));
  }
}

void Connecting::arrive() {
  const Link& there = network_.link(core_.machine(), *to_);
  if (network_.is_lost(there)) return lose();
  SimListener* listener = network_.find_listener(*to_, op_.to());
  if (listener != nullptr && !listener->has_room()) return lose();
  if (listener != nullptr) {
    circuit_ = &network_.add_circuit({core_.machine(), local_, op_.options()},
                                     {*to_, op_.to(), listener->options().stream});
  }
  state_ = listener != nullptr ? State::kAccepted : State::kRefused;
  const Link& back = network_.link(*to_, core_.machine());
  network_.world().schedule(*this, network_.arrival_time(back, 0));
}

void Connecting::lose() {
  if (circuit_ != nullptr) network_.discard(*std::exchange(circuit_, nullptr));
  state_ = State::kWaiting;
  network_.world().schedule(*this, std::min(give_up_at_, asked_at_ + retry_after_));
  retry_after_ = retry_after_ * 2;
}

void Connecting::succeed() {
  Endpoint& client = std::exchange(circuit_, nullptr)->client();
  client.out().say_hello();
  finish(network_.make_handle(client, core_.process()));
}

template <class Outcome>
void Connecting::finish(Outcome outcome) {
  op_.note = 0;
  core_.complete(op_, std::move(outcome));
  network_.remove(*this);
}

void Connecting::cancel_operation() { finish(op_.cancelled()); }

void Connecting::die(Death) { finish(fail(crashed())); }

}  // namespace cairn::sim
