// SPDX-License-Identifier: Apache-2.0
// What the engine asks of a command.
#include "fabric/target/tcp_command.h"

#include <algorithm>
#include <utility>

#include "fabric/target/connection.h"
#include "nvme/limits.h"
#include "task/deadline.h"

namespace cairn::fabric {

task::Task<Result<void>> TcpCommand::take_share(size_t bytes) {
  Result<void> turn = co_await connection->large_data_.acquire(bytes, cancel->token());
  if (turn) share = static_cast<uint32_t>(bytes);
  co_return turn;
}

void TcpCommand::drop_data() {
  piece = {};
  if (const uint32_t units = std::exchange(share, 0)) connection->large_data_.release(units);
  if (data.empty()) return;
  data = Buffer();
  (pointer.in_capsule ? connection->core_.in_capsule : connection->core_.buffers).released();
}

task::Task<Result<nvme::Pieces>> TcpCommand::to_host(size_t bytes) {
  if (pointer.in_capsule || pointer.length != bytes || bytes > nvme::kTransferBytesMax) {
    co_return fail(Errc::kInvalid, "data length");
  }
  if (bytes > kSmallDataMax) {
    Result<void> turn = co_await take_share(bytes);
    if (!turn) co_return fail(turn.error());
  }
  Result<Buffer> buffer = co_await connection->core_.buffers.allocate(bytes, cancel->token());
  if (!buffer) co_return fail(buffer.error());
  data = std::move(*buffer);
  piece = data.bytes();
  has_output = true;
  co_return nvme::Pieces(&piece, 1);
}

task::Task<Result<nvme::Pieces>> TcpCommand::from_host(size_t bytes) {
  // A host may describe more than the command needs: Linux sends a page with every DSM.
  if (pointer.length < bytes || pointer.length > nvme::kTransferBytesMax) {
    co_return fail(Errc::kInvalid, "data length");
  }
  if (!pointer.in_capsule && pointer.length > 0) {
    Result<void> came = co_await ask_for_all();
    if (!came) co_return fail(came.error());
  }
  if (data_corrupt) co_return fail(Errc::kCorrupt, "data digest");
  piece = piece.first(bytes);
  co_return nvme::Pieces(&piece, 1);
}

task::Task<Result<void>> TcpCommand::ask_for_all() {
  if (pointer.length > kSmallDataMax) {
    Result<void> turn = co_await take_share(pointer.length);
    if (!turn) co_return turn;
  }
  Result<Buffer> buffer =
      co_await connection->core_.buffers.allocate(pointer.length, cancel->token());
  if (!buffer) co_return fail(buffer.error());
  data = std::move(*buffer);
  piece = data.bytes();
  window = {};
  state = State::kAsking;
  while (window.end < pointer.length) {
    window.begin = window.next = window.end;
    window.end += std::min(pointer.length - window.end, kH2cDataMax);
    arrived.reset();
    connection->ask_for_data(*this);
    const TargetCore& core = connection->core_;
    task::Deadline deadline(core.env, core.env.now() + core.options.data_timeout, cancel->token());
    Result<void> came = co_await arrived.wait(deadline.token());
    if (came) continue;
    connection->abandon_data(*this);
    if (deadline.expired()) connection->stop("the host does not send its data");
    co_return came;
  }
  state = State::kRunning;
  co_return Result<void>{};
}

void TcpCommand::complete(const nvme::Cqe& completion) {
  cqe = completion;
  state = State::kResponding;
  if (std::exchange(preempted, false) && --connection->preempted_ == 0) {
    connection->preempted_ended_.set();
  }
  // Memory that does not go to the host is free at once, unless it is still being filled.
  if (!has_output && connection->filling_ != this) drop_data();
  connection->queue_out(*this);
}

}  // namespace cairn::fabric
