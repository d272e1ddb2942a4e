// SPDX-License-Identifier: Apache-2.0
#include "env/env.h"

#include <bit>
#include <cstdint>

namespace cairn::env {

Result<size_t> Stream::write_now(std::span<const Bytes>) { return 0; }

void ReadOp::start() {
  if (total_size(pieces_) == 0) return complete(size_t{0});
  stream_.start_read(*this);
}
void ReadOp::cancel() { stream_.cancel_read(*this); }
void WriteOp::start() { stream_.start_write(*this); }
void WriteOp::cancel() { stream_.cancel_write(*this); }
void ReceiveOp::start() { stream_.start_receive(*this); }
void ReceiveOp::cancel() { stream_.cancel_receive(*this); }
void AcceptOp::start() { listener_.start_accept(*this); }
void AcceptOp::cancel() { listener_.cancel_accept(*this); }
void ConnectOp::start() { env_.start_connect(*this); }
void ConnectOp::cancel() { env_.cancel_connect(*this); }

void DiskOp::start() {
  if (Result<void> checked = disk_.check(*this); !checked) return complete(checked);
  const bool moves_bytes = request_.kind != Kind::kFlush && request_.kind != Kind::kResize;
  if (moves_bytes && request_.length == 0) return complete({});
  disk_.start_disk_op(*this);
}
void DiskOp::cancel() { disk_.cancel_disk_op(*this); }

Result<void> Disk::check(const DiskOp& op) const {
  const DiskOp::Request& request = op.request();
  if (request.kind == DiskOp::Kind::kFlush) return {};
  const uint32_t block = block_size();
  if (!is_aligned(request.offset | request.length, block)) {
    return fail(Errc::kInvalid, "disk offset or length is not a multiple of the block size");
  }
  if (request.kind == DiskOp::Kind::kResize) return {};
  if (request.offset > size() || request.length > size() - request.offset) {
    return fail(Errc::kInvalid, "disk range is past the end");
  }
  for (MutableBytes piece : op.into()) {
    const auto address = std::bit_cast<uintptr_t>(piece.data());
    if (!is_aligned(address | piece.size(), block)) {
      return fail(Errc::kInvalid, "disk memory is not aligned to the block size");
    }
  }
  return {};
}

}  // namespace cairn::env
