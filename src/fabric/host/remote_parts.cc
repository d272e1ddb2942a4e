// SPDX-License-Identifier: Apache-2.0
// Parts for requests: who gets the next one, and what is in it.
#include "fabric/host/remote_drive.h"
#include "nvme/format/io_format.h"

namespace cairn::fabric {

using drive::DriveOp;
using drive::Request;
using nvme::IoOpcode;
using Kind = drive::Request::Kind;

// Hands parts to requests, first come first served, while there are any; some are kept for urgent
// ones where these have lanes of their own.
void RemoteDrive::issue() {
  if (is_failing_) return;  // see fail_all()
  issue_from(urgent_, 0);
  issue_from(waiting_, kept_parts_);
}

void RemoteDrive::issue_from(List<DriveOp, DriveOp>& waiting, size_t kept) {
  while (DriveOp* op = waiting.front()) {
    if (op->request.kind == Kind::kCompareAndWrite) {
      if (free_count_ < kept + 2) return;
      waiting.pop_front();
      issue_pair(*op);
    } else {
      if (free_count_ <= kept) return;
      issue_part(*op);
    }
  }
}

void RemoteDrive::issue_part(DriveOp& op) {
  Progress& progress = RemoteDrive::progress(op);
  const uint64_t first = progress.issued;
  const bool is_flush = op.request.kind == Kind::kFlush;
  const auto blocks =
      is_flush ? 0 : static_cast<uint32_t>(commands_.next_blocks(op.request, first));
  progress.issued += blocks;
  if (progress.issued == op.request.blocks || is_flush) op.ListHook<DriveOp>::unlink();
  Part& part = take_part(op);
  fill_part(part, first, blocks);
  dispatch(part);
}

void RemoteDrive::issue_pair(DriveOp& op) {
  const auto blocks = static_cast<uint32_t>(op.request.blocks);
  progress(op).issued = blocks;
  Part& compare = take_part(op);
  Part& write = take_part(op);
  fill_part(compare, 0, blocks);
  fill_part(write, 0, blocks);
  write.sqe.opcode = static_cast<uint8_t>(IoOpcode::kWrite);
  write.data = op.second();
  compare.sqe.set_fuse(nvme::Fuse::kFirst);
  write.sqe.set_fuse(nvme::Fuse::kSecond);
  compare.changes = true;  // together they do
  compare.second = &write;
  compare.pair = &write;
  write.pair = &compare;
  write.is_second = true;
  dispatch(compare);
}

RemoteDrive::Part& RemoteDrive::take_part(DriveOp& op) {
  Part& part = *free_.pop_front();
  --free_count_;
  ++progress(op).parts;
  part.state = Part::State::kReady;
  part.op = &op;
  part.path = nullptr;
  part.pair = nullptr;
  part.second = nullptr;
  part.is_second = false;
  part.gives_up = false;
  part.failures = part.losses = part.detours = 0;
  part.sent = false;
  return part;
}

// `first` is counted from the request's own first block.
void RemoteDrive::fill_part(Part& part, uint64_t first, uint32_t blocks) {
  const DriveOp& op = *part.op;
  const Request& request = op.request;
  const BlockCommand command = commands_.make(request, first, blocks);
  part.sqe = command.sqe;
  part.changes = request.writes();
  part.no_delay = request.is_urgent();
  part.range = command.range;
  part.range_piece = part.range;
  part.data = {};
  if (command.data == BlockCommand::Data::kRange) part.data = {&part.range_piece, 1};
  if (command.data == BlockCommand::Data::kRequest) part.data = op.data();
  part.skip = command.skip;
  part.length = command.length;
}

}  // namespace cairn::fabric
