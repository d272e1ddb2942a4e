// SPDX-License-Identifier: Apache-2.0
// SubmissionQueue: a ring in guest memory that commands are taken from, and those of them that have
// not ended.
//
// A command is copied out of the ring once, so that the guest cannot change it any more. As many
// may be in flight as the ring has entries; more wait in the ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/list.h"
#include "door/vfio_user/completion_queue.h"
#include "door/vfio_user/doorbells.h"
#include "door/vfio_user/guest_ring.h"
#include "door/vfio_user/pci_command.h"
#include "nvme/controller/io_queue.h"
#include "nvme/controller/registry.h"
#include "nvme/format/pci_format.h"
#include "stream/command_ids.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::door::vfio_user {

// What a queue asks of its controller.
class QueueOwner {
 public:
  // Executes a command of the admin queue; it completes later.
  virtual void execute_admin(PciCommand& command) = 0;
  virtual task::Task<nvme::Status> reserve(const nvme::Sqe& sqe, nvme::Pieces data) = 0;
  // A completion was pushed; the driver is to hear of it soon.
  virtual void pushed(CompletionQueue& queue) = 0;
  // The guest broke a queue: the controller fails. `why` is a literal.
  virtual void fail(const char* why) = 0;
  virtual void note_error(uint16_t queue, const nvme::Sqe& sqe, nvme::Status status) = 0;

 protected:
  ~QueueOwner() = default;
};

// On one core. Ended before it goes.
class SubmissionQueue final : public nvme::QueueLink, public nvme::IoControl {
 public:
  struct Parts {
    QueueOwner& owner;
    CompletionQueue& completions;
    Doorbells& doorbells;
    DataPath& path;
  };
  SubmissionQueue(const Parts& parts, const nvme::SubmissionQueueFields& fields);

  // Its commands are executed as I/O of `host`; otherwise they are the admin queue's.
  void serve(nvme::CoreNamespaces& namespaces, const nvme::HostId& host,
             const nvme::IoLimits& limits);

  const nvme::SubmissionQueueFields& fields() const { return fields_; }
  CompletionQueue& completions() { return parts_.completions; }
  bool is_there() { return ring_.is_there(); }

  // Takes what the driver has rung for. True: there was something.
  bool poll();
  // Asks to be rung for what comes next. True: something has come already.
  bool ask_to_ring();
  // Pushes a completion that had to wait. False: there is still no room.
  bool push(PciCommand& command);

  size_t in_flight() const { return in_flight_; }
  uint64_t taken() const { return taken_; }
  // Done when none is in flight. Half a fused pair does not wait for the other half.
  task::Task<void> idle();
  // Takes nothing more, ends its commands soon and waits for them. What was not told yet is told as
  // far as there is room, unless `silently`. Once.
  task::Task<void> end(bool silently);
  // Completions that wait for room are forgotten.
  void drop_untold();
  // Commands that use this memory end soon.
  void abandon(uint64_t address, uint64_t size);
  void cancel_all();
  // Of the commands that run: see Device.
  void note_writes() const;

  // The command has ended; from PciCommand.
  void ended(PciCommand& command);
  // What a drive demands of the memory of this command; 1: nothing.
  uint32_t alignment_for(const nvme::Sqe& sqe) const;

  uint16_t head() const { return head_; }
  // False: there is no such place.
  bool set_head(uint16_t head);
  // A command that was taken before, by a predecessor.
  void take_over(const nvme::Sqe& sqe);
  // A completion that a predecessor could not tell.
  void owe(const nvme::Cqe& cqe);
  // A command that runs is given up: it is neither told nor known any more.
  void forget(PciCommand& command);

  // nvme::QueueLink
  void disconnect(const char* /*why*/) override {}  // the admin queue's link hears it too
  bool abort(uint16_t cid) override;
  bool take_traffic() override { return false; }
  task::Task<void> abort_namespace(uint32_t nsid) override;
  // nvme::IoControl
  task::Task<nvme::Status> reservation(const nvme::Sqe& sqe, nvme::Pieces data) override;

 private:
  // Entries taken in one call, so that others get a turn.
  static constexpr uint32_t kBurst = 64;

  bool has_free_slot() const { return !free_.empty() || slots_.size() < fields_.size + 1u; }
  PciCommand* free_slot();
  void start(PciCommand& command);
  void tell(PciCommand& command);
  void free(PciCommand& command);
  void cancel(PciCommand& command);

  Parts parts_;
  nvme::SubmissionQueueFields fields_;
  GuestRing ring_;
  nvme::CoreNamespaces* namespaces_ = nullptr;
  std::optional<nvme::IoQueue> io_queue_;
  uint16_t head_ = 0;
  bool ending_ = false;
  bool silent_ = false;
  stream::CommandIds ids_;
  std::vector<std::unique_ptr<PciCommand>> slots_;
  List<PciCommand> free_;
  uint64_t taken_ = 0;
  size_t in_flight_ = 0;  // that run
  size_t meant_ = 0;
  task::Event changed_;  // one has ended
};

}  // namespace cairn::door::vfio_user
