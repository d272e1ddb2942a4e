// SPDX-License-Identifier: Apache-2.0
#include "world/uring/ring.h"

#include <cerrno>

#include "base/check.h"

namespace cairn::uring {

Result<std::unique_ptr<Ring>> Ring::make() {
  std::unique_ptr<Ring> ring(new Ring());
  // Best first: completions run only when this thread asks (6.1), then without interrupting it
  // (5.19), then anything.
  constexpr unsigned kCommon = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
  constexpr unsigned kChoices[] = {
      kCommon | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
          IORING_SETUP_TASKRUN_FLAG,
      kCommon | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
      kCommon,
  };
  int error = 0;
  for (const unsigned flags : kChoices) {
    io_uring_params params{};
    params.flags = flags;
    params.cq_entries = kCompletions;
    error = ::io_uring_queue_init_params(kSubmissions, &ring->ring_, &params);
    if (error == -EINVAL) continue;
    if (error < 0) break;
    constexpr unsigned kNeeded = IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG | IORING_FEAT_FAST_POLL;
    if ((params.features & kNeeded) != kNeeded) {
      ::io_uring_queue_exit(&ring->ring_);
      error = -ENOSYS;
      break;
    }
    ring->deferred_ = (flags & IORING_SETUP_DEFER_TASKRUN) != 0;
    ring->registered_ = true;
    (void)::io_uring_register_ring_fd(&ring->ring_);  // saves a lookup per call; not needed
    return ring;
  }
  return fail(Errc::kUnsupported, "io_uring", -error);
}

Ring::~Ring() {
  if (registered_) ::io_uring_queue_exit(&ring_);
}

io_uring_sqe* Ring::next_entry() {
  io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);
  if (sqe != nullptr) return sqe;
  ::io_uring_submit(&ring_);
  sqe = ::io_uring_get_sqe(&ring_);
  CHECK(sqe != nullptr, "submission makes room");
  return sqe;
}

void Ring::cancel(Completion& completion) {
  request(nullptr, [&](io_uring_sqe* sqe) { ::io_uring_prep_cancel(sqe, &completion, 0); });
}

bool Ring::supports(int operation) {
  io_uring_probe* operations = ::io_uring_get_probe_ring(&ring_);
  if (operations == nullptr) return false;
  const bool supported = ::io_uring_opcode_supported(operations, operation) != 0;
  ::io_uring_free_probe(operations);
  return supported;
}

bool Ring::nothing_to_do() const {
  return ::io_uring_sq_ready(&ring_) == 0 && ::io_uring_cq_ready(&ring_) == 0 &&
         (IO_URING_READ_ONCE(*ring_.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) == 0;
}

bool Ring::turn(Duration wait, unsigned events) {
  if (wait.ns <= 0 || ::io_uring_cq_ready(&ring_) != 0) {
    // A polling core comes here all the time: no system call unless the kernel has something.
    if (nothing_to_do()) return false;
    ::io_uring_submit_and_get_events(&ring_);
  } else {
    io_uring_cqe* first = nullptr;
    if (wait == Duration::max()) {
      ::io_uring_submit_and_wait(&ring_, events);
    } else {
      __kernel_timespec timeout{.tv_sec = wait.ns / 1'000'000'000,
                                .tv_nsec = wait.ns % 1'000'000'000};
      ::io_uring_submit_and_wait_timeout(&ring_, &first, events, &timeout, nullptr);
    }
  }
  tell_completions();
  return true;
}

void Ring::tell_completions() {
  io_uring_cqe* cqe = nullptr;
  unsigned head = 0;
  unsigned count = 0;
  io_uring_for_each_cqe(&ring_, head, cqe) {
    ++count;
    auto* completion = reinterpret_cast<Completion*>(cqe->user_data);
    if (completion == nullptr) continue;
    if ((cqe->flags & IORING_CQE_F_MORE) == 0) --in_flight_;
    completion->on_complete(cqe->res, cqe->flags);
  }
  ::io_uring_cq_advance(&ring_, count);
}

}  // namespace cairn::uring
