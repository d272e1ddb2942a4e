// SPDX-License-Identifier: Apache-2.0
// HostPool: the controllers that the drives of one core share.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "env/env.h"
#include "fabric/host/controller.h"
#include "fabric/host/options.h"
#include "fabric/host/session.h"
#include "task/task.h"

namespace cairn::fabric {

// Drives that reach one subsystem at one address as the same host and with the same options use
// one controller there, and so the same connections: a core has one lane to a target (or as many
// as `queues` says), whatever the number of drives behind it. What only concerns a drive's own
// requests (loss_timeout, quiesce, retries) may differ.
//
// Made on the core that uses it; outlives all that was taken from it.
class HostPool {
 public:
  explicit HostPool(env::Env& env) : env_(env) {}
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  env::Env& env() { return env_; }

  // Fills in what `options` lack of the host's names: for a host without any the same every time,
  // because a target must see one host however many drives it uses.
  void name(HostOptions& options);

  // The controller for `options`, whose names are filled in; connecting, if it is new. Each call is
  // followed by one of release().
  HostController& take(const HostSession::Options& options);
  // Closes the controller if nobody else uses it, and is done when that is done.
  task::Task<void> release(HostController& controller);

  struct Entry {
    std::unique_ptr<HostController> controller;
    size_t users = 0;
  };
  // Those in use. Valid until the next take() or release().
  std::span<const Entry> entries() const { return entries_; }

 private:
  env::Env& env_;
  HostOptions self_;  // the names of a host that has none
  std::vector<Entry> entries_;
  size_t closing_ = 0;
};

}  // namespace cairn::fabric
