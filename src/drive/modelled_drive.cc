// SPDX-License-Identifier: Apache-2.0
#include "drive/modelled_drive.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn::drive {

namespace {

flash::Op model_op(Request::Kind kind) {
  switch (kind) {
    case Request::Kind::kRead:
    case Request::Kind::kCompare:
      return flash::Op::kRead;
    case Request::Kind::kWrite:
    case Request::Kind::kCompareAndWrite:
      return flash::Op::kWrite;
    case Request::Kind::kDiscard:
    case Request::Kind::kWriteZeroes:  // drives unmap instead of writing zeroes
      return flash::Op::kTrim;
    case Request::Kind::kFlush:
      return flash::Op::kFlush;
  }
  return flash::Op::kFlush;
}

// The drive notes in an operation which ticket travels for it; none when it was passed on.
template <class T>
void set_ticket(DriveOp& op, T* ticket) {
  std::memcpy(op.scratch, &ticket, sizeof ticket);
}
template <class T>
T* ticket_of(const DriveOp& op) {
  T* ticket = nullptr;
  std::memcpy(&ticket, op.scratch, sizeof ticket);
  return ticket;
}

}  // namespace

Result<std::unique_ptr<ModelledDrive>> ModelledDrive::make(env::Env& env,
                                                           std::unique_ptr<Drive> below,
                                                           ModelledMedium& medium) {
  if (below->geometry().bytes() > medium.bytes()) {
    return fail(Errc::kInvalid, "a drive larger than its model");
  }
  return std::unique_ptr<ModelledDrive>(new ModelledDrive(env, std::move(below), medium));
}

ModelledDrive::ModelledDrive(env::Env& env, std::unique_ptr<Drive> below, ModelledMedium& medium)
    : env_(env), below_(std::move(below)), medium_(medium), geometry_(below_->geometry()) {
  geometry_.volatile_cache |= medium.has_volatile_cache();
}

ModelledDrive::Ticket& ModelledDrive::free_ticket() {
  if (free_.empty()) {
    free_.push_back(tickets_.emplace_back(std::make_unique<Ticket>(*this)).get());
  }
  Ticket& ticket = *free_.back();
  free_.pop_back();
  return ticket;
}

void ModelledDrive::start(DriveOp& op) {
  if (const Result<void> entered = gate_.enter(); !entered) return op.complete(entered);
  Ticket& ticket = free_ticket();
  ticket.op = &op;
  set_ticket(op, &ticket);
  const uint64_t sectors_per_block = geometry().block_size / flash::kSectorBytes;
  const uint64_t sectors = op.request.blocks * sectors_per_block;
  ticket.request = {.op = model_op(op.request.kind),
                    .lba = op.request.lba.value() * sectors_per_block,
                    .sectors = static_cast<uint32_t>(std::min<uint64_t>(sectors, UINT32_MAX)),
                    .durable = op.request.durable};
  // Blocks in memory are copied while the model's time passes, not after it. What changes the drive
  // waits: a cancelled write has not happened.
  const bool may_be_early = op.request.kind == Request::Kind::kRead;
  ticket.moved = may_be_early ? below_->try_now(op.request, op.data()) : std::nullopt;
  medium_.send(ticket, env_);
}

// The model works on what was asked; only the one who asked goes away. Below, the token ends it.
void ModelledDrive::cancel(DriveOp& op) {
  Ticket* ticket = ticket_of<Ticket>(op);
  if (ticket == nullptr) return;
  ticket->op = nullptr;
  op.complete(op.cancelled());
}

void ModelledDrive::pass_on(Ticket& ticket) {
  const std::optional<Result<void>> moved = std::exchange(ticket.moved, std::nullopt);
  free_.push_back(&ticket);
  if (DriveOp* op = std::exchange(ticket.op, nullptr)) {
    set_ticket<Ticket>(*op, nullptr);
    if (moved) {
      op->complete(*moved);
    } else {
      gate_.spawn(run(*op));
    }
  }
  gate_.leave();
}

task::Task<void> ModelledDrive::run(DriveOp& op) {
  const Result<void> done = co_await below_->submit(op.request, op.data(), op.second(), op.token());
  op.complete(done);
}

task::Task<void> ModelledDrive::close() {
  co_await gate_.close();
  co_await below_->close();
}

}  // namespace cairn::drive
