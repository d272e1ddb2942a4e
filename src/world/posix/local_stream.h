// SPDX-License-Identifier: Apache-2.0
// Streams over local sockets that carry descriptors, in both real worlds.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/error.h"
#include "env/sharing.h"
#include "world/posix/core.h"
#include "world/posix/fd.h"
#include "world/posix/watch.h"

namespace cairn::posix {

// kInvalid: not a local socket.
Result<void> check_local(int fd);

class LocalSocket final : public env::LocalStream, public Watch::User {
 public:
  LocalSocket(CoreEnv& core, SharedFd fd) : core_(core), fd_(std::move(fd)) {}
  ~LocalSocket() override;

  // Before its first use.
  void set_watch(std::unique_ptr<Watch> watch) { watch_ = std::move(watch); }
  void reset() override;

 private:
  void start_read(env::LocalReadOp& op) override;
  void cancel_read(env::LocalReadOp& op) override;
  void start_write(env::LocalWriteOp& op) override;
  void cancel_write(env::LocalWriteOp& op) override;
  void start_hang_up(env::LocalHangUpOp& op) override;
  void cancel_hang_up(env::LocalHangUpOp& op) override;
  void on_readable() override { try_read(); }
  void on_writable() override { try_write(); }
  void on_hang_up() override { look_for_peer(); }

  void try_read();
  void try_write();
  void look_for_peer();
  void end_read(Result<env::Received> result);
  void end_write(Result<void> result);
  void end_hang_up(Result<void> result);

  CoreEnv& core_;
  SharedFd fd_;
  std::unique_ptr<Watch> watch_;
  env::LocalReadOp* read_ = nullptr;
  env::LocalWriteOp* write_ = nullptr;
  env::LocalHangUpOp* hang_up_ = nullptr;
  size_t written_ = 0;  // of write_
  bool write_broken_ = false;
  bool was_reset_ = false;  // by us
};

}  // namespace cairn::posix
