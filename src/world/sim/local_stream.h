// SPDX-License-Identifier: Apache-2.0
// SimLocalStream: a program's end of a local connection that carries descriptors. Internal.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/error.h"
#include "env/sharing.h"
#include "env/stream.h"
#include "world/sim/circuit.h"
#include "world/sim/shared.h"

namespace cairn::sim {

class Core;

class SimLocalStream final : public env::LocalStream, public Endpoint::User {
 public:
  // kInvalid: the connection is not local.
  static Result<std::unique_ptr<env::LocalStream>> open(Core& core, env::Connection connection);
  SimLocalStream(Core& core, Endpoint& endpoint);
  ~SimLocalStream() override;

  void reset() override;
  void on_readable() override;
  void on_room() override;
  void on_error() override;

 private:
  void start_read(env::LocalReadOp& op) override;
  void cancel_read(env::LocalReadOp& op) override;
  void start_write(env::LocalWriteOp& op) override;
  void cancel_write(env::LocalWriteOp& op) override;
  void start_hang_up(env::LocalHangUpOp& op) override;
  void cancel_hang_up(env::LocalHangUpOp& op) override;

  Result<env::Received> read_now(env::LocalReadOp& op);
  Result<void> can_write(const env::LocalWriteOp& op) const;
  Result<void> left() const;
  // True when all was accepted.
  bool write_some();

  Core& core_;
  Endpoint& endpoint_;
  env::LocalReadOp* reading_ = nullptr;
  env::LocalWriteOp* writing_ = nullptr;
  env::LocalHangUpOp* hanging_up_ = nullptr;
  size_t written_ = 0;  // of writing_
  std::vector<SharedHold> to_send_;
  bool was_write_cut_short_ = false;
  bool was_reset_here_ = false;
};

}  // namespace cairn::sim
