// SPDX-License-Identifier: Apache-2.0
// What the engine asks of a command.
#include "fabric/target/tcp_command.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/target/connection.h"
#include "nvme/limits.h"
#include "task/deadline.h"

namespace cairn::fabric {

void TcpCommand::drop_data() {
  end_loan();
  piece = {};
  connection->share_.give_back(share);
  if (data.empty()) return;
  data = Buffer();
  if (pointer.in_capsule) return connection->core_.in_capsule.released();
  connection->buffers().released();
}

std::optional<nvme::Pieces> TcpCommand::here_from_host(size_t bytes) {
  if (!pointer.in_capsule || pointer.length < bytes || data_corrupt) return std::nullopt;
  piece = piece.first(bytes);
  return nvme::Pieces(&piece, 1);
}

// A loan has memory of its own from the start: what a slow host does not take at once is copied
// there, without waiting for anything.
bool TcpCommand::borrow(Bytes bytes, task::Gate& keeper) {
  const size_t size = bytes.size();
  if (pointer.in_capsule || pointer.length != size || !connection->can_borrow()) return false;
  if (!connection->share_.try_take(size, share)) return false;
  std::optional<Buffer> buffer = connection->buffers().try_allocate(size);
  if (!buffer || !keeper.enter()) {
    connection->share_.give_back(share);
    return false;
  }
  data = std::move(*buffer);
  piece = data.bytes();
  has_output = true;
  loan = bytes;
  lender = &keeper;
  return true;
}

void TcpCommand::keep_loan(size_t offset) {
  const Bytes rest = loan.subspan(offset);
  std::memcpy(piece.subspan(offset).data(), rest.data(), rest.size());
  end_loan();
}

void TcpCommand::end_loan() {
  loan = {};
  if (task::Gate* keeper = std::exchange(lender, nullptr)) keeper->leave();
}

task::Task<Result<nvme::Pieces>> TcpCommand::to_host(size_t bytes) {
  if (pointer.in_capsule || pointer.length != bytes || bytes > nvme::kTransferBytesMax) {
    co_return fail(Errc::kInvalid, "data length");
  }
  if (!connection->share_.try_take(bytes, share)) {
    Result<void> turn = co_await connection->share_.take(bytes, share, cancel->token());
    if (!turn) co_return fail(turn.error());
  }
  Result<Buffer> buffer = co_await connection->buffers().allocate(bytes, cancel->token());
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
  if (!connection->share_.try_take(pointer.length, share)) {
    Result<void> turn = co_await connection->share_.take(pointer.length, share, cancel->token());
    if (!turn) co_return turn;
  }
  Result<Buffer> buffer = co_await connection->buffers().allocate(pointer.length, cancel->token());
  if (!buffer) co_return fail(buffer.error());
  data = std::move(*buffer);
  piece = data.bytes();
  window = {.end = pointer.length};
  state = State::kAsking;
  arrived.reset();
  connection->ask_for_data(*this);
  const TargetCore& core = connection->core_;
  task::Deadline deadline(core.env, core.env.now() + core.options.data_timeout, cancel->token());
  Result<void> came = co_await arrived.wait(deadline.token());
  if (!came) {
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
  --connection->running_;
  if (std::exchange(preempted, false) && --connection->preempted_ == 0) {
    connection->preempted_ended_.set();
  }
  // Memory that does not go to the host is free at once, unless it is still being filled.
  if (!has_output && connection->filling_ != this) drop_data();
  connection->queue_out(*this);
}

}  // namespace cairn::fabric
