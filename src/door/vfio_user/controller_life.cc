// SPDX-License-Identifier: Apache-2.0
// How a PciController begins, stops, moves and ends.
#include <utility>

#include "base/check.h"
#include "door/vfio_user/controller.h"
#include "env/call.h"

namespace cairn::door::vfio_user {

using Step = nvme::PciRegisters::Step;

task::Task<void> PciController::take_turn() {
  const Result<void> taken = co_await turn_.acquire();
  CHECK(taken.has_value(), "nobody cancels this wait");
}

// --- what the driver asks for by registers ------------------------------------------------------

void PciController::settle() {
  if (is_settling_ || is_closing_ || registers_->next() == Step::kNone) return;
  is_settling_ = true;
  gate_.spawn(run_steps());
}

task::Task<void> PciController::run_steps() {
  co_await take_turn();
  while (!is_closing_ && registers_->next() != Step::kNone) co_await do_step(registers_->next());
  is_settling_ = false;
  turn_.release();
}

task::Task<void> PciController::do_step(Step step) {
  switch (step) {
    case Step::kReset:
      co_await do_reset();
      registers_->was_reset();
      failure_ = "";
      break;
    case Step::kShutDown: {
      const std::vector<nvme::DriveFailure> failed =
          co_await env::call_on(parts_.env, options_.control, [this](env::Env& there) {
            return options_.registry.shut_down(*control_.controller, there.stop_token());
          });
      if (!failed.empty()) fail("a drive could not be flushed before the shutdown");
      registers_->was_shut_down();
      break;
    }
    case Step::kEnable:
      if (!registers_->can_enable()) {
        fail("the guest enabled the controller with a configuration that it does not have");
      } else if (!make_admin_queue()) {
        forget_queues();
        fail("the admin queue is not in the guest's memory");
      } else {
        co_await env::call_on(parts_.env, options_.control, [this](env::Env&) {
          options_.registry.enable(*control_.controller);
        });
        registers_->was_enabled();
        wake();
      }
      break;
    case Step::kNone:
      break;
  }
}

bool PciController::make_admin_queue() {
  path_.page_size = registers_->page_size();
  const nvme::AdminQueueSizes sizes = registers_->admin_sizes();
  const nvme::Status made = create_completion_queue(
      {.id = 0, .size = sizes.completion, .address = registers_->admin_completion()});
  if (!made.ok()) return false;
  SubmissionQueue& queue =
      add_submission({.id = 0, .size = sizes.submission, .address = registers_->admin_submission()},
                     *find_completion(0));
  if (!queue.is_there()) return false;
  polled_.push_back(&queue);
  return true;
}

// The admin queue first: a command that makes or deletes a queue comes to its end, and then none is
// made or deleted any more.
task::Task<void> PciController::do_reset() {
  is_resetting_ = true;
  co_await cancel_admin();
  if (SubmissionQueue* const admin = find_submission(0)) co_await admin->end(true);
  for (size_t id = 1; id < submission_.size(); ++id) {
    if (submission_[id] != nullptr) co_await submission_[id]->end(true);
  }
  co_await env::call_on(parts_.env, options_.control, [this](env::Env&) {
    control_.cancel.emplace();
    return options_.registry.reset(*control_.controller);
  });
  forget_queues();
  is_resetting_ = false;
}

task::Task<void> PciController::reset() {
  // A pause has the turn, until it is resumed.
  if (!is_paused_ || is_resuming_) co_await take_turn();
  co_await do_reset();
  registers_.emplace(attached_.queue_entries_max);
  failure_ = "";
  loaded_.reset();
  is_paused_ = false;
  turn_.release();
}

task::Task<void> PciController::close() {
  is_closing_ = true;
  if (!is_paused_ || is_resuming_) co_await take_turn();
  co_await do_reset();
  turn_.release();
  co_await gate_.close();
  co_await env::call_on(parts_.env, options_.control, [this](env::Env&) {
    return options_.registry.disconnected(*control_.controller, 0, admin_link_);
  });
}

// --- moving to another process ------------------------------------------------------------------

task::Task<void> PciController::pause() {
  co_await take_turn();
  is_paused_ = true;
  is_parking_ = true;
  co_await cancel_admin();
  // By index: a command may still make or delete a queue.
  for (size_t id = 0; id < submission_.size(); ++id) {
    if (submission_[id] != nullptr) co_await submission_[id]->idle();
  }
  is_parking_ = false;
  co_await env::call_on(parts_.env, options_.control,
                        [this](env::Env&) { control_.cancel.emplace(); });
}

void PciController::resume() {
  CHECK(is_paused_ && !is_resuming_, "only what was paused is resumed");
  is_resuming_ = true;
  gate_.spawn(do_resume());
}

task::Task<void> PciController::do_resume() {
  if (loaded_) co_await restore(*std::exchange(loaded_, std::nullopt));
  is_paused_ = false;
  is_resuming_ = false;
  if (SubmissionQueue* const admin = find_submission(0)) {
    for (const nvme::Sqe& sqe : std::exchange(parked_, {})) admin->take_over(sqe);
  }
  turn_.release();
  look_soon();
  settle();
}

Result<std::vector<std::byte>> PciController::save() {
  CHECK(is_paused_, "a state is saved while it does not change");
  ControllerState state;
  state.registers = registers_->save();
  state.shadow = doorbells_.shadow();
  for (const auto& queue : completion_) {
    if (queue == nullptr) continue;
    const nvme::CompletionQueueFields& fields = queue->fields();
    const CompletionQueue::Position position = queue->position();
    StateCompletionQueue& entry = state.completion.emplace_back();
    entry.address = fields.address;
    entry.id = fields.id;
    entry.size = fields.size;
    entry.vector = fields.vector;
    entry.head = position.head;
    entry.tail = position.tail;
    entry.interrupts = fields.interrupts ? 1 : 0;
    entry.phase = position.phase ? 1 : 0;
    entry.doorbell = doorbells_.real(Doorbell::head_of(fields.id));
    queue->waiting().for_each([&](PciCommand& command) {
      nvme::Cqe cqe = command.cqe;
      cqe.sqid = command.queue().fields().id;
      state.untold.push_back({.cqe = cqe});
    });
  }
  for (const auto& queue : submission_) {
    if (queue == nullptr) continue;
    const nvme::SubmissionQueueFields& fields = queue->fields();
    StateSubmissionQueue& entry = state.submission.emplace_back();
    entry.address = fields.address;
    entry.id = fields.id;
    entry.size = fields.size;
    entry.completion = fields.completion;
    entry.head = queue->head();
    entry.doorbell = doorbells_.real(Doorbell::tail_of(fields.id));
  }
  state.event_requests = parked_;
  for (const Setting& setting : settings_) {
    StateFeature& entry = state.features.emplace_back();
    entry.sqe = setting.sqe;
    entry.size = static_cast<uint32_t>(setting.data.size());
    std::ranges::copy(setting.data, std::as_writable_bytes(std::span(entry.data)).begin());
  }
  return state.encode();
}

Result<void> PciController::load(Bytes bytes) {
  CHECK(is_paused_, "a state is loaded while nothing runs");
  Result<ControllerState> state = ControllerState::decode(bytes);
  // No state is that of a controller nobody has touched.
  loaded_ = state ? std::move(*state) : ControllerState();
  // Registers and doorbells are the guest's to read and write as soon as it runs; queues follow.
  registers_.emplace(attached_.queue_entries_max);
  registers_->restore(loaded_->registers);
  doorbells_.reset();
  for (const StateCompletionQueue& entry : loaded_->completion) {
    if (entry.id > Doorbell::kQueuesMax) continue;
    doorbells_.set_real(Doorbell::head_of(entry.id), entry.doorbell);
  }
  for (const StateSubmissionQueue& entry : loaded_->submission) {
    if (entry.id > Doorbell::kQueuesMax) continue;
    doorbells_.set_real(Doorbell::tail_of(entry.id), entry.doorbell);
  }
  failure_ = "";
  if (!state) return cairn::fail(state.error());
  return {};
}

task::Task<void> PciController::restore(ControllerState state) {
  doorbells_.keep(true);
  co_await do_reset();
  bool restored = true;
  if (registers_->is_ready() && !registers_->has_failed()) {
    restored = co_await restore_queues(state);
  }
  doorbells_.keep(false);
  if (!restored) fail("queues of the state are not in the guest's memory, or are none");
}

// Queues are made as the driver had them made, then set to where they stood.
task::Task<bool> PciController::restore_queues(const ControllerState& state) {
  if (!make_admin_queue()) co_return false;
  co_await env::call_on(parts_.env, options_.control,
                        [this](env::Env&) { options_.registry.enable(*control_.controller); });
  for (const StateFeature& feature : state.features) {
    std::vector<std::byte> data(feature.size);
    const Bytes kept = std::as_bytes(std::span(feature.data)).first(data.size());
    std::ranges::copy(kept, data.begin());
    if (feature.sqe.admin_opcode() != nvme::AdminOpcode::kSetFeatures) co_return false;
    const nvme::Cqe set = co_await ask_registry(feature.sqe, data);
    if (!set.get_status().ok()) co_return false;
    keep_setting(feature.sqe, data);
  }
  for (const StateCompletionQueue& entry : state.completion) {
    nvme::Sqe sqe;
    sqe.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kCreateCompletionQueue);
    nvme::CompletionQueueFields{.id = entry.id,
                                .size = entry.size,
                                .vector = entry.vector,
                                .interrupts = entry.interrupts != 0,
                                .address = entry.address}
        .encode(sqe);
    if (entry.id != 0) {
      const nvme::Cqe made = co_await ask_registry(sqe, {});
      if (!made.get_status().ok()) co_return false;
    }
    const bool placed = find_completion(entry.id)->set_position(
        {.head = entry.head, .tail = entry.tail, .phase = entry.phase != 0});
    if (!placed) co_return false;
  }
  for (const StateSubmissionQueue& entry : state.submission) {
    nvme::Sqe sqe;
    sqe.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kCreateSubmissionQueue);
    nvme::SubmissionQueueFields{.id = entry.id,
                                .size = entry.size,
                                .completion = entry.completion,
                                .address = entry.address}
        .encode(sqe);
    if (entry.id != 0) {
      const nvme::Cqe made = co_await ask_registry(sqe, {});
      if (!made.get_status().ok()) co_return false;
    }
    if (!find_submission(entry.id)->set_head(entry.head)) co_return false;
  }
  const bool has_shadow = state.shadow.doorbells != 0 || state.shadow.event_indexes != 0;
  if (has_shadow && !doorbells_.use_shadow(parts_.memory, state.shadow)) co_return false;
  for (const StateUntold& entry : state.untold) {
    SubmissionQueue* const queue = find_submission(entry.cqe.sqid);
    if (queue == nullptr) co_return false;
    queue->owe(entry.cqe);
  }
  for (const nvme::Sqe& sqe : state.event_requests) {
    if (sqe.admin_opcode() != nvme::AdminOpcode::kAsynchronousEventRequest) co_return false;
  }
  parked_ = state.event_requests;
  co_return true;
}

}  // namespace cairn::door::vfio_user
