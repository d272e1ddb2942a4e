// SPDX-License-Identifier: Apache-2.0
#include "world/sim/listener.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/list.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "world/sim/core.h"
#include "world/sim/machine.h"
#include "world/sim/network.h"
#include "world/sim/process.h"

namespace cairn::sim {

namespace {
bool is_wildcard(const env::Address& address) {
  return address.family != env::Address::Family::kLocal &&
         std::ranges::all_of(address.ip, [](uint8_t byte) { return byte == 0; });
}
}  // namespace

SimListener::SimListener(Core& core, env::Address at, const env::ListenOptions& options)
    : core_(core), network_(core.machine().network()), local_(std::move(at)), options_(options) {
  join(core.process());
}

SimListener::~SimListener() {
  CHECK(accepting_ == nullptr, "a listener goes after its accept has completed");
  while (!backlog_.empty()) {
    Endpoint& endpoint = *backlog_.pop();
    endpoint.reset();
    endpoint.close();
  }
}

bool SimListener::serves(const env::Address& at) const {
  if (local_.family == env::Address::Family::kLocal || at.family == env::Address::Family::kLocal) {
    return local_.family == at.family && local_.path == at.path;
  }
  return local_.port == at.port &&
         (is_wildcard(local_) || (local_.family == at.family && local_.ip == at.ip));
}

bool SimListener::conflicts_with(const env::Address& at, const env::ListenOptions& options) const {
  if (options_.share_port && options.share_port && local_ == at) return false;
  if (local_.family == env::Address::Family::kLocal || at.family == env::Address::Family::kLocal) {
    return serves(at);
  }
  return local_.port == at.port && (serves(at) || is_wildcard(at));
}

void SimListener::add(Endpoint& endpoint) {
  if (accepting_ != nullptr) {
    env::AcceptOp& op = *std::exchange(accepting_, nullptr);
    return core_.complete(op, network_.make_handle(endpoint, core_.process()));
  }
  endpoint.own(nullptr);
  backlog_.push(&endpoint);
}

void SimListener::start_accept(env::AcceptOp& op) {
  CHECK(accepting_ == nullptr, "one accept at a time");
  CHECK(core_.is_current(), "a listener is used on its core");
  if (is_dead_) return op.complete(fail(crashed()));
  if (backlog_.empty()) {
    accepting_ = &op;
    return;
  }
  const double limit = network_.faults().accept_limit;
  if (limit > 0 && network_.rng().bernoulli(limit)) {
    return op.complete(fail(Errc::kLimit, "accept: out of descriptors"));
  }
  op.complete(network_.make_handle(*backlog_.pop(), core_.process()));
}

void SimListener::cancel_accept(env::AcceptOp& op) {
  CHECK(accepting_ == &op);
  accepting_ = nullptr;
  core_.complete(op, op.cancelled());
}

void SimListener::die(Death death) {
  is_dead_ = true;
  ListHook<SimListener>::unlink();
  while (!backlog_.empty()) {
    Endpoint& endpoint = *backlog_.pop();
    endpoint.die(death);
    endpoint.close();
  }
  if (accepting_ == nullptr) return;
  env::AcceptOp& op = *std::exchange(accepting_, nullptr);
  core_.complete(op, fail(crashed()));
}

}  // namespace cairn::sim
