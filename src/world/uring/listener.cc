// SPDX-License-Identifier: Apache-2.0
#include "world/uring/listener.h"

#include <sys/socket.h>

#include <cerrno>
#include <deque>
#include <utility>

#include "base/check.h"
#include "world/posix/socket.h"

namespace cairn::uring {

class UringListener::Acceptor final : public Completion {
 public:
  Acceptor(UringCore& core, posix::Fd fd, const env::StreamOptions& options)
      : core_(core), fd_(std::move(fd)), options_(options) {}

  int fd() const { return fd_.get(); }

  void start(env::AcceptOp& op) {
    CHECK(accept_ == nullptr, "one accept at a time");
    accept_ = &op;
    deliver();
    arm();
  }
  void cancel(env::AcceptOp& op) {
    accept_ = nullptr;
    op.complete(op.cancelled());
  }
  void orphan() {
    CHECK(accept_ == nullptr, "no accept is in flight when a listener goes");
    orphaned_ = true;
    // Stops listening now: the kernel keeps the descriptor until the accept is taken back.
    ::shutdown(fd_.get(), SHUT_RDWR);
    if (!armed_) {
      delete this;
    } else if (!stopping_) {
      core_.ring().cancel(*this);
    }
  }

 private:
  static constexpr size_t kQueueHigh = 64;  // then leave connections in the kernel's backlog

  void arm() {
    if (armed_ || queue_.size() >= kQueueHigh) return;
    armed_ = true;
    stopping_ = false;
    core_.ring().request(this, [&](io_uring_sqe* sqe) {
      constexpr int kFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;
      if (core_.has_multishot()) {
        ::io_uring_prep_multishot_accept(sqe, fd_.get(), nullptr, nullptr, kFlags);
      } else {
        ::io_uring_prep_accept(sqe, fd_.get(), nullptr, nullptr, kFlags);
      }
    });
  }

  void on_complete(int32_t result, uint32_t flags) override {
    if ((flags & IORING_CQE_F_MORE) == 0) armed_ = false;
    posix::Fd fd(result >= 0 ? result : -1);
    if (orphaned_) {
      if (!armed_) delete this;
      return;
    }
    if (fd.is_open()) {
      posix::apply_options(fd.get(), options_);
      // A burst brings more than kQueueHigh before the kernel stops: its backlog, at worst. None
      // is dropped, because whoever is last in the burst may be the one that others wait for.
      queue_.push_back(std::move(fd));
    } else if (result != -ECANCELED && result != -EINTR && result != -ECONNABORTED) {
      error_ = -result;
    }
    if (armed_ && !stopping_ && queue_.size() >= kQueueHigh) {
      stopping_ = true;
      core_.ring().cancel(*this);
    }
    deliver();
    if (accept_ != nullptr) arm();
  }

  void deliver() {
    if (accept_ == nullptr) return;
    if (!queue_.empty()) {
      posix::Fd fd = std::move(queue_.front());
      queue_.pop_front();
      return std::exchange(accept_, nullptr)->complete(core_.connection(fd.take()));
    }
    if (error_ != 0) {
      const int error = std::exchange(error_, 0);
      std::exchange(accept_, nullptr)->complete(fail(Error::from_errno(error, "accept")));
    }
  }

  UringCore& core_;
  posix::Fd fd_;
  env::StreamOptions options_;
  std::deque<posix::Fd> queue_;
  env::AcceptOp* accept_ = nullptr;
  int error_ = 0;
  bool armed_ = false;
  bool stopping_ = false;
  bool orphaned_ = false;
};

UringListener::UringListener(UringCore& core, posix::Fd fd, const env::StreamOptions& options)
    : acceptor_(new Acceptor(core, std::move(fd), options)) {}

UringListener::~UringListener() { acceptor_->orphan(); }

env::Address UringListener::local() const { return posix::local_address(acceptor_->fd()); }
void UringListener::start_accept(env::AcceptOp& op) { acceptor_->start(op); }
void UringListener::cancel_accept(env::AcceptOp& op) { acceptor_->cancel(op); }

}  // namespace cairn::uring
