// SPDX-License-Identifier: Apache-2.0
// Reception: who comes in at a listener whose connections live on all cores.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/ids.h"
#include "env/address.h"
#include "env/connection_slots.h"
#include "env/env.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::stream {

// A connection that did not come in, or had to make room for another, for our own log.
struct RefusedConnection {
  env::Address peer;
  std::string why;
};
using RefusedConnectionHook = std::function<void(const RefusedConnection&)>;

// On the listener's core, the control core, but for what it says otherwise. Close it when every
// visitor has left.
class Reception {
 public:
  // One connection, from when it is opened to its end.
  class Visitor : private env::ConnectionSlots::Slot {
   public:
    explicit Visitor(CoreId core) : core_(core) {}
    // Called and set on its own core: ends the connection while it has proven nothing. Empty: there
    // is nothing to end.
    std::function<void()> end;

   private:
    friend class Reception;
    CoreId core_;  // its own
    env::Address peer_;
    task::Gate calls_;  // of `end`
  };

  Reception(env::Env& env, const env::ConnectionLimits& limits, RefusedConnectionHook on_refused)
      : env_(env), slots_(limits), on_refused_(std::move(on_refused)) {}

  // False: there is no place for it. Asked once.
  bool admit(Visitor& visitor, const env::Address& peer);
  void prove(Visitor& visitor) { slots_.prove(visitor, env_.now()); }
  // The last call for it.
  task::Task<void> leave(Visitor& visitor);
  // Until nobody is here, or `until`.
  task::Task<void> await_departures(Time until);
  task::Task<void> close() { return gate_.close(); }

  size_t connections() const { return slots_.connections(); }
  uint64_t refused() const { return refused_; }

 private:
  task::Task<void> end(Visitor& visitor);
  void note(const env::Address& peer, const char* why);

  env::Env& env_;
  env::ConnectionSlots slots_;
  RefusedConnectionHook on_refused_;
  uint64_t refused_ = 0;
  task::Event left_;  // somebody has
  task::Gate gate_;
};

}  // namespace cairn::stream
