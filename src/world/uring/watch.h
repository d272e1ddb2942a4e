// SPDX-License-Identifier: Apache-2.0
// Watches and raised events as requests of the ring.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/list.h"
#include "world/posix/watch.h"
#include "world/uring/core.h"
#include "world/uring/ring.h"

namespace cairn::uring {

// A poll request for each thing that is wanted. What the kernel still holds outlives the watch.
class UringWatch final : public posix::Watch {
 public:
  UringWatch(Ring& ring, const posix::SharedFd& fd, User& user);
  ~UringWatch() override;

  void want_readable() override;
  void want_writable() override;
  void want_hang_up() override;
  bool tells_what_is_there() const override { return true; }

 private:
  class Poll;
  Poll* reading_;
  Poll* writing_;
  Poll* hanging_up_;
};

// A write to an event descriptor. Goes by itself when nobody needs it any more and the kernel has
// let go: what was raised is still told.
class EventWrite final : public Completion, public ListHook<EventWrite> {
 public:
  EventWrite(UringCore& core, posix::SharedFd fd) : core_(core), fd_(std::move(fd)) {}

  void raise();
  void orphan();

 private:
  ~EventWrite() = default;
  void on_complete(int32_t result, uint32_t flags) override;

  UringCore& core_;
  posix::SharedFd fd_;
  bool is_under_way_ = false;
  bool again_ = false;
  bool is_orphan_ = false;
};

// One that would wait does so in the kernel, not here.
class UringRaiser final : public posix::EventRaiser {
 public:
  UringRaiser(UringCore& core, posix::SharedFd fd) : write_(new EventWrite(core, std::move(fd))) {}
  ~UringRaiser() override { write_->orphan(); }

  void raise() override { write_->raise(); }

 private:
  EventWrite* write_;
};

}  // namespace cairn::uring
