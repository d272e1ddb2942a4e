// SPDX-License-Identifier: Apache-2.0
#include "world/posix/event_signal.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace cairn::posix {

Result<Fd> make_event() {
  Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.is_open()) return fail(Error::from_errno(errno, "make a signal"));
  return fd;
}

Result<void> check_event(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  std::array<char, 64> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) {
    return fail(Errc::kUnsupported, "look at a signal's descriptor: mount /proc", errno);
  }
  const std::string_view kind(target.data(), static_cast<size_t>(length));
  if (kind != "anon_inode:[eventfd]") {
    return fail(Errc::kInvalid, "a descriptor to raise or wait for is no signal");
  }
  return {};
}

void raise_event(int fd) {
  // A full counter is raised already. A peer that made its descriptor blocking and fills it between
  // these two calls could make the second wait; io_uring has no such gap.
  pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return;
  const uint64_t one = 1;
  (void)!::write(fd, &one, sizeof(one));
}

bool take_event(int fd) {
  // Whether the descriptor is blocking is the peer's choice, and may change: this read never is.
  uint64_t count = 0;
  const iovec into{.iov_base = &count, .iov_len = sizeof(count)};
  ssize_t got = 0;
  do got = ::preadv2(fd, &into, 1, -1, RWF_NOWAIT);
  while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == ENOSYS || errno == EOPNOTSUPP)) {
    // An old kernel, or one that is emulated: nobody else is meant to read.
    pollfd some{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&some, 1, 0) != 1 || (some.revents & POLLIN) == 0) return false;
    got = ::read(fd, &count, sizeof(count));
  }
  return got == static_cast<ssize_t>(sizeof(count));
}

EventSignal::~EventSignal() {
  CHECK(waiting_ == nullptr, "a signal goes after its wait has completed");
}

bool EventSignal::take() {
  core_.count_system_call();
  return take_event(fd_->get());
}

void EventSignal::start_wait(env::SignalOp& op) {
  CHECK(waiting_ == nullptr, "one wait at a time");
  if (!watch_->tells_what_is_there() && take()) return op.complete({});
  waiting_ = &op;
  watch_->want_readable();
}

void EventSignal::on_readable() {
  if (waiting_ == nullptr) return;
  if (!take()) return watch_->want_readable();
  std::exchange(waiting_, nullptr)->complete({});
}

void EventSignal::cancel_wait(env::SignalOp& op) {
  waiting_ = nullptr;
  op.complete(op.cancelled());
}

}  // namespace cairn::posix
