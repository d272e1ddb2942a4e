// SPDX-License-Identifier: Apache-2.0
// Command: what a transport lends the engine while it executes one submission entry.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "nvme/format/command_format.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::nvme {

using Pieces = std::span<const MutableBytes>;

// Derived by a transport: NVMe/TCP keeps its capsule and buffers in it, a door for virtual machines
// its translated guest memory. Lives from submission until complete(); used on its queue's core.
class Command {
 public:
  Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Sqe sqe;

  // Memory for `bytes` that go to the host when the command completes with success. At most once.
  // kInvalid: the command's data pointer describes another length. kLimit, kCancelled, kReset.
  virtual task::Task<Result<Pieces>> to_host(size_t bytes) = 0;
  // The first `bytes` of the data the host sends with the command. At most once. Same errors;
  // kInvalid: it sends less.
  virtual task::Task<Result<Pieces>> from_host(size_t bytes) = 0;
  // Gets the memory that from_host() of this command and of `second`, of the same queue, will need:
  // all of it together, so that no half of a fused pair keeps its own while it waits for the
  // other's. From then on an Abort of one ends both. Before from_host() of either. kLimit: there
  // is none for too long; kCancelled.
  virtual task::Task<Result<void>> prepare_pair(Command& second);
  // Memory of the engine's own until complete(). What from_host() gave is gone, so that nothing is
  // kept while this waits. At most once. kLimit: there is none for too long; kCancelled.
  virtual task::Task<Result<MutableBytes>> scratch(size_t bytes) = 0;
  // Whether somebody else, a guest for instance, can change what from_host() and to_host() gave
  // while the command runs.
  virtual bool has_unstable_memory() const { return false; }
  // Ways that need no waiting, for drives that have their blocks in memory. A transport may always
  // decline.
  //
  // What from_host() gives, if all of it is here. None: from_host() waits for it, or says why not.
  virtual std::optional<Pieces> here_from_host([[maybe_unused]] size_t bytes) {
    return std::nullopt;
  }
  // The same for to_host().
  virtual std::optional<Pieces> here_to_host([[maybe_unused]] size_t bytes) { return std::nullopt; }
  // On success these bytes go to the host from where they lie, instead of what to_host() gives.
  // `keeper` is entered until they are not needed any more, and that waits for no host. False: not
  // taken.
  virtual bool borrow([[maybe_unused]] Bytes bytes, [[maybe_unused]] task::Gate& keeper) {
    return false;
  }
  // The end: the engine does not touch the command afterwards.
  virtual void complete(const Cqe& cqe) = 0;
  // Requested by Abort and when the queue goes away.
  virtual task::CancelToken cancel_token() = 0;

 protected:
  ~Command() = default;
};

inline task::Task<Result<void>> Command::prepare_pair(Command& /*second*/) {
  co_return Result<void>{};
}

// A completion of `command` with this status; the transport fills in the queue's head.
inline Cqe make_cqe(const Sqe& sqe, Status status, uint32_t dw0 = 0) {
  Cqe cqe;
  cqe.dw0 = dw0;
  cqe.cid = sqe.cid;
  cqe.set_status(status);
  return cqe;
}

}  // namespace cairn::nvme
