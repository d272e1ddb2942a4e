// SPDX-License-Identifier: Apache-2.0
// Ring: one io_uring instance, and who is told when a request of it completes.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/units.h"

// Newer than Debian 12's header: the completion says whether the socket still holds data.
#ifndef IORING_CQE_F_SOCK_NONEMPTY
#define IORING_CQE_F_SOCK_NONEMPTY (1U << 2)
#endif

namespace cairn::uring {

// Told of one request's completions. Its address is the request's user data, so it stays put until
// the last one. Runs on the ring's core between tasks: completes operations, never runs user code.
class Completion {
 public:
  // `result` as the kernel gave it (negative errno); `flags` IORING_CQE_F_*, where F_MORE says that
  // this request will complete again.
  virtual void on_complete(int32_t result, uint32_t flags) = 0;

 protected:
  ~Completion() = default;
};

// Made and used on one thread.
class Ring {
 public:
  // kUnsupported, with the errno as detail: io_uring is missing or forbidden here.
  static Result<std::unique_ptr<Ring>> make();
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // A request, filled in by `prepare(io_uring_sqe*)` and submitted by the next turn() at the
  // latest. `completion` is told; null: nobody is.
  template <class F>
  void request(Completion* completion, F&& prepare) {
    io_uring_sqe* sqe = next_entry();
    prepare(sqe);
    ::io_uring_sqe_set_data(sqe, completion);
    if (completion != nullptr) ++in_flight_;
  }
  // Asks for the early end of whatever `completion` waits for.
  void cancel(Completion& completion);

  // Submits what was prepared and tells completions; waits for `events` of them, for at most
  // `wait`. True: by a system call.
  bool turn(Duration wait, unsigned events = 1);

  // Requests that have yet to complete for the last time.
  size_t in_flight() const { return in_flight_; }
  io_uring* get() { return &ring_; }
  bool has_deferred_tasks() const { return deferred_; }
  // Whether this kernel knows an operation (IORING_OP_*).
  bool supports(int operation);

 private:
  static constexpr unsigned kSubmissions = 512;
  static constexpr unsigned kCompletions = 8192;

  Ring() = default;
  io_uring_sqe* next_entry();
  bool nothing_to_do() const;
  void tell_completions();

  io_uring ring_{};
  bool deferred_ = false;
  bool registered_ = false;
  size_t in_flight_ = 0;
};

}  // namespace cairn::uring
