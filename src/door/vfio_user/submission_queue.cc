// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/submission_queue.h"

#include <cstring>

#include "base/check.h"
#include "nvme/controller/core_namespace.h"

namespace cairn::door::vfio_user {

namespace {

bool is_told_apart(nvme::Status status) {
  const nvme::StatusCode code = status.code();
  return code == nvme::StatusCode::kAbortRequested ||
         code == nvme::StatusCode::kAbortedQueueDeletion ||
         code == nvme::StatusCode::kCompareFailure;
}

}  // namespace

SubmissionQueue::SubmissionQueue(const Parts& parts, const nvme::SubmissionQueueFields& fields)
    : parts_(parts),
      fields_(fields),
      ring_(parts.path.memory, fields.address, (fields.size + 1u) * sizeof(nvme::Sqe),
            GuestRing::Use::kRead),
      ids_(fields.size + 1u) {
  parts_.doorbells.clear(Doorbell::tail_of(fields.id));
  slots_.reserve(fields.size + 1u);
}

void SubmissionQueue::serve(nvme::CoreNamespaces& namespaces, const nvme::HostId& host,
                            const nvme::IoLimits& limits) {
  namespaces_ = &namespaces;
  io_queue_.emplace(nvme::IoQueue::Context{
      .namespaces = namespaces, .control = *this, .host = host, .limits = limits});
}

bool SubmissionQueue::poll() {
  const std::optional<uint32_t> tail = parts_.doorbells.read(Doorbell::tail_of(fields_.id));
  if (tail == head_ || ending_) return false;
  if (!tail) {
    parts_.owner.fail("the guest took away the memory of its doorbells");
    return true;
  }
  if (*tail > fields_.size) {
    parts_.owner.fail("the guest rang for an entry that a submission queue does not have");
    return true;
  }
  if (!ring_.is_there()) {
    parts_.owner.fail("the guest took away the memory of a submission queue");
    return true;
  }
  bool took = false;
  for (uint32_t i = 0; i < kBurst && head_ != *tail; ++i) {
    PciCommand* const command = free_slot();
    if (command == nullptr) break;
    std::memcpy(&command->sqe, ring_.at(head_ * sizeof(nvme::Sqe)), sizeof(nvme::Sqe));
    head_ = head_ == fields_.size ? uint16_t{0} : static_cast<uint16_t>(head_ + 1);
    start(*command);
    took = true;
  }
  return took;
}

bool SubmissionQueue::ask_to_ring() {
  if (ending_) return false;
  const Doorbell tail = Doorbell::tail_of(fields_.id);
  parts_.doorbells.ask_to_ring(tail, head_);
  return parts_.doorbells.read(tail) != head_ && has_free_slot();
}

PciCommand* SubmissionQueue::free_slot() {
  if (PciCommand* const command = free_.pop_front()) return command;
  if (!has_free_slot()) return nullptr;
  slots_.push_back(std::make_unique<PciCommand>(*this, parts_.path));
  return slots_.back().get();
}

void SubmissionQueue::start(PciCommand& command) {
  command.state = PciCommand::State::kRunning;
  ++in_flight_;
  ++taken_;
  command.owns_id = ids_.add(command.sqe.cid);
  if (!command.owns_id) {
    return command.complete(
        nvme::make_cqe(command.sqe, nvme::final_status(nvme::StatusCode::kCommandIdConflict)));
  }
  if (!io_queue_) return parts_.owner.execute_admin(command);
  if (!io_queue_->try_now(command)) io_queue_->submit(command);
}

void SubmissionQueue::take_over(const nvme::Sqe& sqe) {
  PciCommand* const command = free_slot();
  if (command == nullptr) return parts_.owner.fail("a state with more commands than entries");
  command->sqe = sqe;
  start(*command);
}

void SubmissionQueue::ended(PciCommand& command) {
  --in_flight_;
  if (command.is_meant) {
    command.is_meant = false;
    --meant_;
    // A fenced command is not to be sent again: it would be executed behind the fence.
    if (command.cqe.get_status().code() == nvme::StatusCode::kAbortRequested) {
      command.cqe.set_status(nvme::final_status(nvme::StatusCode::kAbortedPreempt));
    }
  }
  changed_.set();
  if (silent_) return free(command);
  const nvme::Status status = command.cqe.get_status();
  if (!status.ok() && io_queue_ && !is_told_apart(status)) {
    parts_.owner.note_error(fields_.id, command.sqe, status);
  }
  if (ending_ && status.code() == nvme::StatusCode::kAbortRequested) {
    command.cqe.set_status(nvme::StatusCode::kAbortedQueueDeletion);
  }
  tell(command);
}

// Those that wait go first: completions of a queue are pushed in the order in which they ended.
void SubmissionQueue::tell(PciCommand& command) {
  command.state = PciCommand::State::kEnded;
  CompletionQueue& completions = parts_.completions;
  if (!completions.waiting().empty() || !push(command)) completions.waiting().push_back(command);
}

bool SubmissionQueue::push(PciCommand& command) {
  command.cqe.sqhd = head_;
  command.cqe.sqid = fields_.id;
  switch (parts_.completions.push(command.cqe)) {
    case CompletionQueue::Pushed::kFull:
      return false;
    case CompletionQueue::Pushed::kBroken:
      parts_.owner.fail("the guest broke a completion queue, or took away its memory");
      free(command);
      return true;
    case CompletionQueue::Pushed::kDone:
      break;
  }
  free(command);
  parts_.owner.pushed(parts_.completions);
  return true;
}

void SubmissionQueue::free(PciCommand& command) {
  if (command.owns_id) ids_.remove(command.sqe.cid);
  command.owns_id = false;
  command.state = PciCommand::State::kFree;
  free_.push_back(command);
}

void SubmissionQueue::forget(PciCommand& command) {
  --in_flight_;
  changed_.set();
  free(command);
}

void SubmissionQueue::owe(const nvme::Cqe& cqe) {
  PciCommand* const command = free_slot();
  if (command == nullptr) return parts_.owner.fail("a state with more completions than entries");
  command->sqe = {};
  command->sqe.cid = cqe.cid;
  command->owns_id = ids_.add(cqe.cid);
  command->cqe = cqe;
  tell(*command);
}

void SubmissionQueue::cancel(PciCommand& command) {
  if (io_queue_ && io_queue_->abandon(command)) return;
  command.cancel();
}

void SubmissionQueue::cancel_all() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i]->state == PciCommand::State::kRunning) cancel(*slots_[i]);
  }
}

task::Task<void> SubmissionQueue::end(bool silently) {
  CHECK(!ending_, "a queue ends once");
  ending_ = true;
  silent_ = silently;
  cancel_all();
  if (io_queue_) {
    co_await io_queue_->close();
  } else {
    co_await idle();
  }
  if (silently) drop_untold();
}

task::Task<void> SubmissionQueue::idle() {
  for (size_t i = 0; io_queue_ && i < slots_.size(); ++i) {
    if (slots_[i]->state == PciCommand::State::kRunning) io_queue_->abandon(*slots_[i]);
  }
  while (in_flight_ > 0) {
    changed_.reset();
    const Result<void> changed = co_await changed_.wait();
    CHECK(changed.has_value(), "nobody cancels this wait");
  }
}

void SubmissionQueue::drop_untold() {
  for (const auto& slot : slots_) {
    if (slot->state != PciCommand::State::kEnded) continue;
    slot->unlink();
    free(*slot);
  }
}

void SubmissionQueue::abandon(uint64_t address, uint64_t size) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    PciCommand& slot = *slots_[i];
    if (slot.state == PciCommand::State::kRunning && slot.uses(address, size)) cancel(slot);
  }
}

void SubmissionQueue::note_writes() const {
  for (const auto& slot : slots_) {
    if (slot->state == PciCommand::State::kRunning) slot->note_writes();
  }
}

uint32_t SubmissionQueue::alignment_for(const nvme::Sqe& sqe) const {
  if (!io_queue_) return 1;
  switch (sqe.io_opcode()) {
    case nvme::IoOpcode::kRead:
    case nvme::IoOpcode::kWrite:
    case nvme::IoOpcode::kCompare:
      break;
    default:
      return 1;  // for the controller, not for a drive
  }
  const nvme::CoreNamespace* const space = namespaces_->find(sqe.nsid);
  return space == nullptr ? 1 : space->drive->geometry().block_size;
}

bool SubmissionQueue::set_head(uint16_t head) {
  if (head > fields_.size) return false;
  head_ = head;
  return true;
}

bool SubmissionQueue::abort(uint16_t cid) {
  for (const auto& slot : slots_) {
    const bool is_it = slot->state == PciCommand::State::kRunning && slot->sqe.cid == cid;
    if (!is_it) continue;
    cancel(*slot);
    return true;
  }
  return false;
}

// Reservation commands stay: they wait for the one that preempts, and change nothing they may not.
task::Task<void> SubmissionQueue::abort_namespace(uint32_t nsid) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    PciCommand& slot = *slots_[i];
    const bool is_it = slot.state == PciCommand::State::kRunning && slot.sqe.nsid == nsid &&
                       !nvme::is_reservation(slot.sqe.io_opcode());
    if (!is_it) continue;
    meant_ += slot.is_meant ? 0 : 1;
    slot.is_meant = true;
    cancel(slot);
  }
  while (meant_ > 0) {
    changed_.reset();
    const Result<void> changed = co_await changed_.wait();
    CHECK(changed.has_value(), "nobody cancels this wait");
  }
}

task::Task<nvme::Status> SubmissionQueue::reservation(const nvme::Sqe& sqe, nvme::Pieces data) {
  return parts_.owner.reserve(sqe, data);
}

}  // namespace cairn::door::vfio_user
