// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/controller.h"

#include <utility>

#include "base/check.h"
#include "door/vfio_user/limits.h"

namespace cairn::door::vfio_user {

namespace {

// Rounds of a device that is told once per ring, before others on its core get a turn.
constexpr int kRoundsMax = 16;

}  // namespace

task::Task<Result<std::unique_ptr<Device>>> PciController::make(DeviceParts parts,
                                                                PciControllerOptions options) {
  const bool is_page = parts.doorbells.size() >= Doorbell::kPageSize &&
                       is_aligned(reinterpret_cast<uintptr_t>(parts.doorbells.data()), 4);
  if (!is_page) co_return cairn::fail(Errc::kInvalid, "this is no page for doorbells");
  auto controller = std::make_unique<PciController>(std::move(parts), std::move(options));
  Result<void> attached = co_await controller->attach();
  if (!attached) co_return cairn::fail(attached.error());
  co_return std::unique_ptr<Device>(std::move(controller));
}

PciController::PciController(DeviceParts parts, PciControllerOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      doorbells_(parts_.doorbells.first(Doorbell::kPageSize)),
      buffers_(parts_.env, parts_.env.buffers()),
      path_{.memory = parts_.memory, .buffers = buffers_},
      raiser_(parts_.env, [this](uint16_t vector) { raise(vector); }),
      look_(&PciController::on_look) {
  look_.self = this;
}

PciController::~PciController() = default;

void PciController::read(uint64_t offset, MutableBytes into) {
  registers_->read(static_cast<uint32_t>(std::min<uint64_t>(offset, kDoorbellsAt)), into);
}

void PciController::write(uint64_t offset, Bytes from) {
  if (offset >= kDoorbellsAt) return;
  registers_->write(static_cast<uint32_t>(offset), from);
  raise_unmasked();
  settle();
}

// --- looking at queues --------------------------------------------------------------------------

bool PciController::poll() {
  if (!takes_commands()) return false;
  is_looking_ = true;
  bool worked = poll_once();
  // Nobody looks again by itself, so all there is has to be found now.
  if (parts_.is_told) {
    int rounds = 0;
    while (takes_commands() && (poll_once() || ask_to_ring())) {
      worked = true;
      if (++rounds < kRoundsMax) continue;
      look_soon();
      break;
    }
  }
  is_looking_ = false;
  raiser_.flush();
  return worked;
}

bool PciController::poll_once() {
  bool worked = false;
  for (SubmissionQueue* const queue : polled_) {
    worked = queue->poll() || worked;
    CompletionQueue& completions = queue->completions();
    if (!completions.waiting().empty()) worked = tell_waiting(completions) || worked;
  }
  return worked;
}

bool PciController::tell_waiting(CompletionQueue& queue) {
  bool told = false;
  while (PciCommand* const command = queue.waiting().pop_front()) {
    if (!command->queue().push(*command)) {
      queue.waiting().push_front(*command);
      break;
    }
    told = true;
  }
  return told;
}

// True: something came meanwhile.
bool PciController::ask_to_ring() {
  bool came = false;
  for (SubmissionQueue* const queue : polled_) {
    came = queue->ask_to_ring() || came;
    CompletionQueue& completions = queue->completions();
    if (completions.waiting().empty()) continue;
    completions.ask_for_room();
    came = tell_waiting(completions) || came;
  }
  return came;
}

// What ends between two looks is told together.
void PciController::pushed(CompletionQueue& queue) {
  raiser_.note(queue);
  if (!is_looking_) look_soon();
}

void PciController::look_soon() {
  if (look_posted_ || !gate_.enter()) return;
  look_posted_ = true;
  parts_.env.post(parts_.env.core(), look_);
}

void PciController::on_look(env::Message& message, env::Env& /*env*/) {
  PciController& self = *static_cast<Look&>(message).self;
  self.look_posted_ = false;
  if (self.parts_.is_told) self.poll();
  self.raiser_.flush();
  self.wake();
  self.gate_.leave();
}

// INTMS masks the pin and MSI; with MSI-X a driver leaves it alone.
void PciController::raise(uint16_t vector) {
  const bool is_masked = vector < 32 && (registers_->interrupt_mask() >> vector & 1) != 0;
  if (!is_masked) return parts_.raise(vector);
  held_back_ |= 1u << vector;
}

void PciController::raise_unmasked() {
  const uint32_t open = held_back_ & ~registers_->interrupt_mask();
  held_back_ &= ~open;
  for (uint16_t vector = 0; open != 0 && vector < 32; ++vector) {
    if ((open >> vector & 1) != 0) parts_.raise(vector);
  }
}

void PciController::fail(const char* why) {
  if (registers_->has_failed()) return;
  failure_ = why;
  registers_->fail();
  parts_.env.trace().record("vfio-user controller failed");
}

void PciController::leave(const char* why) {
  fail(why);
  if (options_.on_leave) options_.on_leave();
}

void PciController::abandon(uint64_t address, uint64_t size) {
  for (SubmissionQueue* const queue : polled_) queue->abandon(address, size);
}

// Rings are looked up, and so noted, whenever the log has forgotten pointers.
void PciController::note_writes() {
  for (const SubmissionQueue* const queue : polled_) queue->note_writes();
}

size_t PciController::in_flight() const {
  size_t count = 0;
  for (const SubmissionQueue* const queue : polled_) count += queue->in_flight();
  return count;
}

PciController::Figures PciController::figures() const {
  Figures figures{.commands = taken_,
                  .interrupts = raiser_.raised(),
                  .bytes_copied = path_.bytes_copied,
                  .failure = failure_};
  for (const SubmissionQueue* const queue : polled_) figures.commands += queue->taken();
  return figures;
}

// --- queues, as the registry asks for them ------------------------------------------------------

CompletionQueue* PciController::find_completion(uint16_t id) {
  return id < completion_.size() ? completion_[id].get() : nullptr;
}

SubmissionQueue* PciController::find_submission(uint16_t id) {
  return id < submission_.size() ? submission_[id].get() : nullptr;
}

nvme::Status PciController::create_completion_queue(const nvme::CompletionQueueFields& fields) {
  if (fields.id > Doorbell::kQueuesMax) {
    return nvme::final_status(nvme::StatusCode::kInvalidQueueId);
  }
  auto queue = std::make_unique<CompletionQueue>(parts_.memory, doorbells_, fields);
  if (!queue->is_there()) return nvme::final_status(nvme::StatusCode::kDataTransferError);
  if (completion_.size() <= fields.id) completion_.resize(fields.id + 1u);
  completion_[fields.id] = std::move(queue);
  return {};
}

SubmissionQueue& PciController::add_submission(const nvme::SubmissionQueueFields& fields,
                                               CompletionQueue& completions) {
  const SubmissionQueue::Parts parts{
      .owner = *this, .completions = completions, .doorbells = doorbells_, .path = path_};
  if (submission_.size() <= fields.id) submission_.resize(fields.id + 1u);
  submission_[fields.id] = std::make_unique<SubmissionQueue>(parts, fields);
  return *submission_[fields.id];
}

nvme::Status PciController::create_submission_queue(const nvme::SubmissionQueueFields& fields,
                                                    const nvme::HostId& host,
                                                    nvme::QueueLink*& link) {
  if (fields.id > Doorbell::kQueuesMax) {
    return nvme::final_status(nvme::StatusCode::kInvalidQueueId);
  }
  SubmissionQueue& queue = add_submission(fields, *find_completion(fields.completion));
  if (!queue.is_there()) {
    submission_[fields.id].reset();
    return nvme::final_status(nvme::StatusCode::kDataTransferError);
  }
  queue.serve(*attached_.namespaces, host, attached_.limits);
  polled_.push_back(&queue);
  link = &queue;
  return {};
}

task::Task<void> PciController::drain_submission_queue(uint16_t id) {
  return find_submission(id)->end(false);
}

void PciController::delete_submission_queue(uint16_t id) {
  SubmissionQueue& queue = *find_submission(id);
  taken_ += queue.taken();
  queue.drop_untold();
  std::erase(polled_, &queue);
  submission_[id].reset();
}

void PciController::delete_completion_queue(uint16_t id) { completion_[id].reset(); }

nvme::Status PciController::use_doorbell_buffers(const nvme::DoorbellBuffers& buffers) {
  return doorbells_.use_shadow(parts_.memory, buffers)
             ? nvme::Status()
             : nvme::final_status(nvme::StatusCode::kInvalidField);
}

void PciController::set_coalescing(nvme::InterruptCoalescing coalescing) {
  raiser_.set_coalescing(coalescing);
  look_soon();
}

void PciController::set_vector(nvme::InterruptVector vector) {
  raiser_.set_vector(vector);
  look_soon();
}

void PciController::forget_queues() {
  for (const SubmissionQueue* const queue : polled_) taken_ += queue->taken();
  polled_.clear();
  submission_.clear();
  completion_.clear();
  doorbells_.reset();
  raiser_.reset();
  settings_.clear();
  parked_.clear();
  held_back_ = 0;
}

}  // namespace cairn::door::vfio_user
