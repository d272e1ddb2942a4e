// SPDX-License-Identifier: Apache-2.0
// HostCommand: one command a host sends, and its answer.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "nvme/format/command_format.h"

namespace cairn::fabric {

class HostQueue;

// Belongs to whoever wants it executed and lives from submission until its `done` is called, once,
// on the queue's core and never inside the call that submitted it. Its memory is lent for the same
// time. It may be submitted again afterwards.
class HostCommand : public ListHook<HostCommand> {
 public:
  using Done = void (*)(HostCommand&);
  explicit HostCommand(Done function) : done(function) {}
  HostCommand(const HostCommand&) = delete;
  HostCommand& operator=(const HostCommand&) = delete;

  // --- what is asked
  nvme::Sqe sqe;  // without command id and data pointer, which the queue fills in
  std::span<const MutableBytes> data;  // where it goes or comes from, as the opcode says
  uint32_t skip = 0;                   // the command's part of `data` begins so many bytes into it
  uint32_t length = 0;                 // and has so many; a multiple of 4
  HostCommand* second = nullptr;       // of a fused pair: submitted with this one, done by itself
  bool changes = false;                // what the target stores: it must not happen late
  bool never_times_out = false;        // an event may take for ever
  bool no_delay = false;               // it does not wait for others to leave with it

  // --- what became of it
  // An error: nothing is known of the answer. kReset, kClosed, kTimedOut, kCorrupt, kInvalid: the
  // connection ended; kCancelled, kTimedOut: as cancel() was told.
  Result<void> transport;
  nvme::Cqe cqe;         // when transport succeeded
  uint32_t moved = 0;    // bytes of data that arrived, or that the target asked for
  bool sent = false;     // the target may have seen it
  bool corrupt = false;  // data arrived and did not match their digest

  bool writes() const { return sqe.transfer() == nvme::Transfer::kHostToController; }
  bool reads() const { return sqe.transfer() == nvme::Transfer::kControllerToHost; }

  Done done;
  // The queue that has it, and its place there.
  HostQueue* queue = nullptr;
  void* slot = nullptr;
};

}  // namespace cairn::fabric
