// SPDX-License-Identifier: Apache-2.0
// Listeners on io_uring: a standing accept that fills a short queue.
#pragma once

#include <cstdint>
#include <memory>

#include "env/stream.h"
#include "world/posix/fd.h"
#include "world/uring/core.h"

namespace cairn::uring {

class UringListener final : public env::Listener {
 public:
  UringListener(UringCore& core, posix::Fd fd, const env::StreamOptions& options);
  ~UringListener() override;

  env::Address local() const override;

 private:
  // Outlives the listener while the kernel holds the accept.
  class Acceptor;
  void start_accept(env::AcceptOp& op) override;
  void cancel_accept(env::AcceptOp& op) override;

  Acceptor* acceptor_;
};

}  // namespace cairn::uring
