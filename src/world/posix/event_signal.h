// SPDX-License-Identifier: Apache-2.0
// Signals between processes: event descriptors.
#pragma once

#include <memory>
#include <utility>

#include "base/error.h"
#include "env/sharing.h"
#include "world/posix/core.h"
#include "world/posix/fd.h"
#include "world/posix/watch.h"

namespace cairn::posix {

Result<Fd> make_event();

// A peer may send anything as an event descriptor. kInvalid: this is none; kUnsupported: no way to
// tell (/proc is missing).
Result<void> check_event(int fd);

// Adds one, unless that would wait.
void raise_event(int fd);
// Takes all that was added; false: nothing. Never waits.
bool take_event(int fd);

class EventSignal final : public env::Signal, public Watch::User {
 public:
  EventSignal(CoreEnv& core, SharedFd fd) : core_(core), fd_(std::move(fd)) {}
  ~EventSignal() override;

  // Before its first use.
  void set_world(std::unique_ptr<Watch> watch, std::unique_ptr<EventRaiser> raiser) {
    watch_ = std::move(watch);
    raiser_ = std::move(raiser);
  }
  void raise() override { raiser_->raise(); }

 private:
  void start_wait(env::SignalOp& op) override;
  void cancel_wait(env::SignalOp& op) override;
  void on_readable() override;
  void on_writable() override {}
  // It was raised since the last time.
  bool take();

  CoreEnv& core_;
  SharedFd fd_;
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<EventRaiser> raiser_;
  env::SignalOp* waiting_ = nullptr;
};

}  // namespace cairn::posix
