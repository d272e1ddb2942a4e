// SPDX-License-Identifier: Apache-2.0
// What the engine asks of a command.
#include "fabric/target/tcp_command.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/target/connection.h"
#include "nvme/format/limits.h"
#include "task/deadline.h"

namespace cairn::fabric {

task::Task<Result<void>> TcpCommand::wait_for_share(size_t bytes) {
  if (connection->share_.try_take(bytes, share)) co_return Result<void>{};
  const TargetCore& core = connection->core_;
  task::Deadline deadline(core.env, core.env.now() + core.options.buffer_timeout, cancel->token());
  Result<void> turn = co_await connection->share_.take(bytes, share, deadline.token());
  if (!turn && deadline.expired()) co_return fail(Errc::kLimit, "the share is all in use");
  co_return turn;
}

task::Task<Result<void>> TcpCommand::wait_for_data(size_t bytes) {
  Result<void> turn = co_await wait_for_share(bytes);
  if (!turn) co_return turn;
  const TargetCore& core = connection->core_;
  Result<Buffer> buffer =
      co_await connection->buffers().allocate(bytes, core.options.buffer_timeout, cancel->token());
  if (!buffer) co_return fail(buffer.error());
  data = std::move(*buffer);
  co_return Result<void>{};
}

// A half whose data came in its capsule has a buffer already: the other then takes one only if it
// is free, for nobody waits for a buffer while holding one.
task::Task<Result<void>> TcpCommand::prepare_pair(nvme::Command& second) {
  TcpCommand& other = static_cast<TcpCommand&>(second);
  partner = &other;
  other.partner = this;
  const TargetCore& core = connection->core_;
  const std::array<size_t, 2> sizes = {pointer.length, other.pointer.length};
  // from_host() refuses such lengths, before it asks for anything.
  for (const size_t size : sizes) {
    if (size == 0 || size > nvme::kTransferBytesMax) co_return Result<void>{};
  }
  if (pointer.in_capsule && other.pointer.in_capsule) co_return Result<void>{};
  if (pointer.in_capsule != other.pointer.in_capsule) {
    TcpCommand& asking = pointer.in_capsule ? other : *this;
    const size_t size = asking.pointer.length;
    if (!connection->share_.try_take(size, asking.share)) {
      co_return fail(Errc::kLimit, "the share is all in use");
    }
    std::optional<Buffer> buffer = connection->buffers().try_allocate(size);
    if (!buffer) co_return fail(Errc::kLimit, "all buffers are out");
    asking.data = std::move(*buffer);
    asking.piece = asking.data.bytes();
    co_return Result<void>{};
  }
  task::Deadline deadline(core.env, core.env.now() + core.options.buffer_timeout, cancel->token());
  Result<void> turn =
      co_await connection->share_.take_pair(sizes, share, other.share, deadline.token());
  if (!turn && deadline.expired()) co_return fail(Errc::kLimit, "the share is all in use");
  if (!turn) co_return turn;
  Result<stream::BufferPair> buffers = co_await connection->buffers().allocate_pair(
      sizes, core.options.buffer_timeout, cancel->token());
  if (!buffers) co_return fail(buffers.error());
  data = std::move((*buffers)[0]);
  piece = data.bytes();
  other.data = std::move((*buffers)[1]);
  other.piece = other.data.bytes();
  co_return Result<void>{};
}

task::Task<Result<MutableBytes>> TcpCommand::scratch(size_t bytes) {
  drop_data();
  pointer = {};
  Result<void> got = co_await wait_for_data(bytes);
  if (!got) co_return fail(got.error());
  co_return data.bytes();
}

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
  Result<void> got = co_await wait_for_data(bytes);
  if (!got) co_return fail(got.error());
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
  // Half of a pair has memory already.
  if (piece.empty()) {
    Result<void> got = co_await wait_for_data(pointer.length);
    if (!got) co_return got;
    piece = data.bytes();
  }
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
  // A fenced command is not to be sent again: it would be executed behind the fence.
  if (preempted && cqe.get_status().code() == nvme::StatusCode::kAbortRequested) {
    cqe.set_status(nvme::final_status(nvme::StatusCode::kAbortedPreempt));
  }
  connection->end_running(*this);
  state = State::kResponding;
  // Memory that does not go to the host is free at once, unless it is still being filled.
  if (!has_output && connection->filling_ != this) drop_data();
  connection->queue_out(*this);
}

}  // namespace cairn::fabric
