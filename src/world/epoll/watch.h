// SPDX-License-Identifier: Apache-2.0
// Watches by epoll: every edge of a descriptor is told.
#pragma once

#include <cstdint>
#include <utility>

#include "base/error.h"
#include "world/epoll/core.h"
#include "world/posix/watch.h"

namespace cairn::epoll {

class EpollWatch final : public posix::Watch, public Source {
 public:
  EpollWatch(EpollCore& core, posix::SharedFd fd, User& user)
      : core_(core), fd_(std::move(fd)), user_(user) {}
  ~EpollWatch() override { core_.unwatch(fd_->get()); }

  Result<void> begin();
  // Edges come unasked, and only they.
  void want_readable() override {}
  void want_writable() override {}
  void want_hang_up() override {}
  bool tells_what_is_there() const override { return false; }

 private:
  void on_events(uint32_t events) override;

  EpollCore& core_;
  posix::SharedFd fd_;
  User& user_;
};

}  // namespace cairn::epoll
