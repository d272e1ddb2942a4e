// SPDX-License-Identifier: Apache-2.0
// PciController: the NVMe controller that a guest sees as a PCI function. Registers, doorbells and
// queues in the guest's memory; what commands do is the registry's and its namespaces' (nvme/).
//
// The guest's driver writes registers; what that sets going (enabling, reset, shutdown) happens in
// turn, and CSTS says when it is done. Commands are taken by poll(). A guest that breaks a queue
// stops its own controller (CSTS.CFS) until it resets it, and harms nobody else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "door/vfio_user/completion_queue.h"
#include "door/vfio_user/controller_state.h"
#include "door/vfio_user/device.h"
#include "door/vfio_user/doorbells.h"
#include "door/vfio_user/pci_command.h"
#include "door/vfio_user/raiser.h"
#include "door/vfio_user/submission_queue.h"
#include "nvme/controller/attachment.h"
#include "nvme/controller/pci_registers.h"
#include "nvme/controller/registry.h"
#include "task/gate.h"
#include "task/sync.h"

namespace cairn::door::vfio_user {

struct PciControllerOptions {
  nvme::Registry& registry;  // outlives the controller
  CoreId control;            // the registry's core
  std::string nqn;           // which subsystem
  uint16_t vectors = 1;      // interrupt vectors of the function
  // The subsystem is going, or the registry: somebody should close() the device soon.
  std::function<void()> on_leave;
};

// On one core. Closed before it goes.
class PciController final : public Device, private nvme::PciQueues, private QueueOwner {
 public:
  // Errors as Registry::attach; kInvalid: a page of doorbells that is none.
  static task::Task<Result<std::unique_ptr<Device>>> make(DeviceParts parts,
                                                          PciControllerOptions options);

  PciController(DeviceParts parts, PciControllerOptions options);
  ~PciController() override;

  // Device. Registers are those below the doorbells.
  void read(uint64_t offset, MutableBytes into) override;
  void write(uint64_t offset, Bytes from) override;
  bool poll() override;
  bool is_enabled() const override { return registers_->is_running(); }
  bool is_busy() const override { return in_flight() > event_requests_; }
  void abandon(uint64_t address, uint64_t size) override;
  void note_writes() override;
  task::Task<void> reset() override;
  task::Task<void> pause() override;
  void resume() override;
  Result<std::vector<std::byte>> save() override;
  // What it says is in effect after resume(); queues in memory that is not there fail the
  // controller then.
  Result<void> load(Bytes state) override;
  task::Task<void> close() override;

  struct Figures {
    uint64_t commands = 0;      // taken, of all queues
    uint64_t interrupts = 0;    // raised
    uint64_t bytes_copied = 0;  // between guest memory and buffers, because a drive needed it
    const char* failure = "";   // why CFS is set; a literal
  };
  Figures figures() const;

 private:
  // On the control core, and touched there only.
  struct ControlSide {
    nvme::Controller* controller = nullptr;
    std::optional<task::CancelSource> cancel;
  };
  // The registry's link, while the admin queue itself comes and goes with the driver.
  struct AdminLink final : nvme::QueueLink {
    explicit AdminLink(PciController& its) : self(its) {}
    void disconnect(const char* why) override { self.leave(why); }
    // Admin commands are short, except for requests for events, and those the registry ends.
    bool abort(uint16_t /*cid*/) override { return false; }
    bool take_traffic() override { return false; }
    PciController& self;
  };
  // A Set Features that succeeded.
  struct Setting {
    nvme::Sqe sqe;
    std::vector<std::byte> data;
  };

  // nvme::PciQueues, called by the registry on this core.
  nvme::Status create_completion_queue(const nvme::CompletionQueueFields& fields) override;
  nvme::Status create_submission_queue(const nvme::SubmissionQueueFields& fields,
                                       const nvme::HostId& host, nvme::QueueLink*& link) override;
  task::Task<void> drain_submission_queue(uint16_t id) override;
  void delete_submission_queue(uint16_t id) override;
  void delete_completion_queue(uint16_t id) override;
  nvme::Status use_doorbell_buffers(const nvme::DoorbellBuffers& buffers) override;
  void set_coalescing(nvme::InterruptCoalescing coalescing) override;
  void set_vector(nvme::InterruptVector vector) override;

  // QueueOwner
  void execute_admin(PciCommand& command) override;
  task::Task<nvme::Status> reserve(const nvme::Sqe& sqe, nvme::Pieces data) override;
  void pushed(CompletionQueue& queue) override;
  void fail(const char* why) override;
  void note_error(uint16_t queue, const nvme::Sqe& sqe, nvme::Status status) override;

  // controller_admin.cc
  void leave(const char* why);
  task::Task<Result<void>> attach();
  task::Task<void> run_admin(PciCommand& command);
  task::Task<nvme::Cqe> ask_registry(nvme::Sqe sqe, MutableBytes data);
  task::Task<void> tell_error(uint16_t queue, nvme::Sqe sqe, nvme::Status status);
  task::Task<void> cancel_admin();
  void keep_setting(const nvme::Sqe& sqe, Bytes data);

  // controller_life.cc
  void settle();
  task::Task<void> run_steps();
  task::Task<void> do_step(nvme::PciRegisters::Step step);
  task::Task<void> do_reset();
  bool make_admin_queue();
  task::Task<void> take_turn();
  task::Task<void> do_resume();
  task::Task<void> restore(ControllerState state);
  task::Task<bool> restore_queues(const ControllerState& state);

  bool takes_commands() const { return registers_->is_running() && !is_paused_ && !is_resetting_; }
  size_t in_flight() const;
  bool poll_once();
  bool tell_waiting(CompletionQueue& queue);
  bool ask_to_ring();
  void look_soon();
  void raise(uint16_t vector);
  void raise_unmasked();
  void wake() {
    if (parts_.wake) parts_.wake();
  }
  CompletionQueue* find_completion(uint16_t id);
  SubmissionQueue* find_submission(uint16_t id);
  SubmissionQueue& add_submission(const nvme::SubmissionQueueFields& fields,
                                  CompletionQueue& completions);
  void forget_queues();

  struct Look : env::Message {
    using Message::Message;
    PciController* self = nullptr;
  };
  static void on_look(env::Message& message, env::Env& env);

  DeviceParts parts_;
  PciControllerOptions options_;
  ControlSide control_;
  AdminLink admin_link_{*this};
  nvme::Attached attached_;
  std::optional<nvme::PciRegisters> registers_;
  Doorbells doorbells_;
  stream::BufferQueue buffers_;
  DataPath path_;
  Raiser raiser_;
  std::vector<std::unique_ptr<CompletionQueue>> completion_;  // by id; the admin queue's first
  std::vector<std::unique_ptr<SubmissionQueue>> submission_;  // likewise
  std::vector<SubmissionQueue*> polled_;                      // those there are
  std::vector<Setting> settings_;
  std::vector<nvme::Sqe> parked_;  // event requests, while paused
  std::optional<ControllerState> loaded_;
  size_t event_requests_ = 0;  // in flight
  uint64_t taken_ = 0;         // commands of queues that are gone
  uint32_t held_back_ = 0;     // vectors that INTMS masks and that have something to say
  size_t notes_ = 0;           // errors on their way to the registry
  const char* failure_ = "";
  bool is_settling_ = false;
  bool is_paused_ = false;
  bool is_closing_ = false;
  bool is_looking_ = false;  // inside poll()
  bool is_parking_ = false;
  bool is_resetting_ = false;
  bool is_resuming_ = false;
  Look look_;
  bool look_posted_ = false;
  task::Semaphore turn_{1};  // steps, pauses and resets, one at a time
  task::Gate gate_;
};

}  // namespace cairn::door::vfio_user
