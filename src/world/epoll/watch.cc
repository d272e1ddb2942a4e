// SPDX-License-Identifier: Apache-2.0
#include "world/epoll/watch.h"

#include <sys/epoll.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "base/error.h"
#include "world/posix/event_signal.h"

namespace cairn::epoll {

namespace {

class DirectRaiser final : public posix::EventRaiser {
 public:
  DirectRaiser(EpollCore& core, posix::SharedFd fd) : core_(core), fd_(std::move(fd)) {}
  void raise() override {
    core_.count_system_call();
    posix::raise_event(fd_->get());
  }

 private:
  EpollCore& core_;
  posix::SharedFd fd_;
};

}  // namespace

Result<void> EpollWatch::begin() {
  return core_.watch(fd_->get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this);
}

void EpollWatch::on_events(uint32_t events) {
  constexpr uint32_t kEnds = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  if ((events & (EPOLLIN | kEnds)) != 0) user_.on_readable();
  if ((events & (EPOLLOUT | kEnds)) != 0) user_.on_writable();
  if ((events & kEnds) != 0) user_.on_hang_up();
}

Result<std::unique_ptr<posix::Watch>> EpollCore::make_watch(posix::SharedFd fd,
                                                            posix::Watch::User& user) {
  auto watch = std::make_unique<EpollWatch>(*this, std::move(fd), user);
  if (Result<void> begun = watch->begin(); !begun) return fail(begun.error());
  return watch;
}

std::unique_ptr<posix::EventRaiser> EpollCore::make_raiser(posix::SharedFd fd) {
  return std::make_unique<DirectRaiser>(*this, std::move(fd));
}

}  // namespace cairn::epoll
