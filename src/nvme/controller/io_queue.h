// SPDX-License-Identifier: Apache-2.0
// IoQueue: executes the commands of one I/O queue on this core's drives. Knows no transport.
#pragma once

#include <cstdint>
#include <string>

#include "nvme/controller/command.h"
#include "nvme/controller/core_namespace.h"
#include "nvme/format/io_format.h"
#include "nvme/format/replicate_format.h"
#include "nvme/reservation/reservation_view.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::nvme {

// Limits a controller advertises and a queue enforces.
struct IoLimits {
  uint32_t transfer_bytes_max = 1 << 20;  // MDTS
  uint32_t dsm_ranges_max = 256;
  uint32_t copy_ranges_max = 128;     // MSRC, one-based here
  uint32_t copy_bytes_max = 1 << 20;  // MCL and MSSRL, in bytes
};

// What commands that concern more than this core are passed on to: the controller, elsewhere.
class IoControl {
 public:
  // Register, acquire, release: the data was read. Report: fills `answer` up to its size.
  virtual task::Task<Status> reservation(const Sqe& sqe, Pieces data) = 0;
  // A drive may hold something else than the host, which goes by incarnations, knows from Identify.
  // The transport sees to it that no answer reaches the host before it has asked again: the one
  // that is given next neither.
  virtual void drive_changed() {}

 protected:
  ~IoControl() = default;
};

// Commands run side by side; each completes in its own time. Close before destruction.
class IoQueue {
 public:
  struct Context {
    CoreNamespaces& namespaces;
    IoControl& control;
    HostId host{};
    std::string host_nqn;
    uint64_t era = 0;  // of the controller, as ToldIncarnation's
    // The host learns of losses by reading incarnations when it connects; others by a flush that
    // fails, as from any disk.
    bool knows_incarnations = false;
    IoLimits limits;
    bool authenticated = true;  // false: every command is refused until set_authenticated()
  };
  explicit IoQueue(const Context& context) : context_(context) {}

  // Takes a command; its complete() is called once, perhaps before this returns. The order of calls
  // is the order of the queue: it decides which commands fuse.
  void submit(Command& command);
  // Executes a read or write that needs no waiting and no task: it is complete. False: nothing was
  // done, and it is for submit().
  bool try_now(Command& command);
  void set_authenticated(bool authenticated) { context_.authenticated = authenticated; }
  // Completes the first of a fused pair whose second has not come. False: it is no such command,
  // and its own token ends it.
  bool abandon(Command& command, StatusCode code = StatusCode::kAbortRequested);
  // Completes a half-finished fused pair and waits for every command. Cancel them first if they
  // should not take their time.
  task::Task<void> close();
  size_t in_flight() const { return gate_.count(); }

 private:
  task::Task<void> execute(Command& command);
  task::Task<Status> dispatch(Command& command, CoreNamespace& space);
  task::Task<Status> transfer(Command& command, CoreNamespace& space);
  task::Task<Status> write_zeroes(Command& command, CoreNamespace& space);
  task::Task<Status> manage_dataset(Command& command, CoreNamespace& space);
  task::Task<Status> copy(Command& command, CoreNamespace& space, uint32_t& copied);
  task::Task<Status> replicate(Command& command, CoreNamespace& space);
  // Whether a replica may be written as the command says; `first` is the namespace that NSID names.
  Status check_replica(const CoreNamespace& first, const CoreNamespace& other,
                       const ReplicateFields& fields,
                       const ReplicateFields::Replica& replica) const;
  task::Task<Status> write_replica(Command& command, CoreNamespace& space, drive::Request request,
                                   Pieces data);
  task::Task<Status> reserve(Command& command);
  task::Task<Status> flush_one(Command& command, CoreNamespace& space);
  task::Task<Status> flush_all(Command& command);
  task::Task<void> execute_fused(Command& compare, Command& write);
  struct FusedOutcome {
    Status first;
    Status second;
  };
  task::Task<FusedOutcome> compare_and_write(Command& compare, Command& write);
  // Null: there is none for this host.
  CoreNamespace* find(uint32_t nsid) const {
    CoreNamespace* space = context_.namespaces.find(nsid);
    return space != nullptr && space->is_for(context_.host_nqn) ? space : nullptr;
  }
  Status check_range(const CoreNamespace& space, Lba start, uint64_t blocks) const;
  Status check_transfer(const CoreNamespace& space, const BlockFields& fields) const;
  Status admit(const CoreNamespace& space, bool writes) const;
  // Whether a read or write may be executed now.
  bool may_transfer(const CoreNamespace& space, const BlockFields& fields, bool writes) const;
  void abandon_first(StatusCode code);
  // The namespace's drive has answered. A host that knows nothing of incarnations gets the answer
  // whatever it is: that of a flush that fails is all it is ever told of a loss.
  void note_answer(CoreNamespace& space) {
    const bool is_known = space.is_known_to(context_.era);
    if (!is_known && context_.knows_incarnations) [[unlikely]]
      context_.control.drive_changed();
  }

  Context context_;
  Command* first_ = nullptr;  // of a fused pair, waiting for its second
  task::Gate gate_;
};

}  // namespace cairn::nvme
