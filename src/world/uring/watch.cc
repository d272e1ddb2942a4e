// SPDX-License-Identifier: Apache-2.0
#include "world/uring/watch.h"

#include <poll.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "base/error.h"
#include "world/posix/event_signal.h"
#include "world/uring/core.h"
#include "world/uring/ring.h"

namespace cairn::uring {

class UringWatch::Poll final : public Completion {
 public:
  using Tell = void (User::*)();
  Poll(Ring& ring, posix::SharedFd fd, User& user, unsigned events, Tell tell)
      : ring_(ring), fd_(std::move(fd)), user_(&user), events_(events), tell_(tell) {}

  void ask() {
    if (is_asked_) return;
    is_asked_ = true;
    ring_.request(this,
                  [&](io_uring_sqe* sqe) { ::io_uring_prep_poll_add(sqe, fd_->get(), events_); });
  }
  void orphan() {
    user_ = nullptr;
    if (!is_asked_) {
      delete this;
    } else {
      ring_.cancel(*this);
    }
  }

 private:
  void on_complete(int32_t, uint32_t) override {
    is_asked_ = false;
    if (user_ == nullptr) {
      delete this;
    } else {
      (user_->*tell_)();
    }
  }

  Ring& ring_;
  posix::SharedFd fd_;
  User* user_;  // null: nobody wants to know any more
  unsigned events_;
  Tell tell_;
  bool is_asked_ = false;
};

UringWatch::UringWatch(Ring& ring, const posix::SharedFd& fd, User& user)
    : reading_(new Poll(ring, fd, user, POLLIN | POLLRDHUP, &User::on_readable)),
      writing_(new Poll(ring, fd, user, POLLOUT, &User::on_writable)),
      hanging_up_(new Poll(ring, fd, user, POLLRDHUP, &User::on_hang_up)) {}

UringWatch::~UringWatch() {
  reading_->orphan();
  writing_->orphan();
  hanging_up_->orphan();
}

void UringWatch::want_readable() { reading_->ask(); }
void UringWatch::want_writable() { writing_->ask(); }
void UringWatch::want_hang_up() { hanging_up_->ask(); }

void EventWrite::raise() {
  static constexpr uint64_t kOne = 1;
  if (is_under_way_) {
    again_ = true;  // the one under way may have been seen already
    return;
  }
  is_under_way_ = true;
  core_.add_raised(*this);
  core_.ring().request(this, [&](io_uring_sqe* sqe) {
    ::io_uring_prep_write(sqe, fd_->get(), &kOne, sizeof(kOne), 0);
  });
}

void EventWrite::orphan() {
  is_orphan_ = true;
  if (!is_under_way_) delete this;
}

// A failure is a counter that is full, and so is raised.
void EventWrite::on_complete(int32_t, uint32_t) {
  is_under_way_ = false;
  ListHook<EventWrite>::unlink();
  const bool again = std::exchange(again_, false);
  if (again && !core_.is_ending()) return raise();
  if (again) posix::raise_event(fd_->get());
  if (is_orphan_) delete this;
}

Result<std::unique_ptr<posix::Watch>> UringCore::make_watch(posix::SharedFd fd,
                                                            posix::Watch::User& user) {
  return std::make_unique<UringWatch>(*ring_, fd, user);
}

std::unique_ptr<posix::EventRaiser> UringCore::make_raiser(posix::SharedFd fd) {
  return std::make_unique<UringRaiser>(*this, std::move(fd));
}

}  // namespace cairn::uring
