// SPDX-License-Identifier: Apache-2.0
// PciCommand: one command of a guest, and the guest's memory that it is about.
//
// Drives read from and write to that memory itself. Data that waits for something keeps its regions
// from going away; only where a drive needs its memory aligned and the guest's is not, it goes
// through a buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "base/list.h"
#include "door/common/guest_memory.h"
#include "nvme/controller/command.h"
#include "nvme/format/data_list.h"
#include "stream/buffer_queue.h"
#include "task/cancel.h"

namespace cairn::door::vfio_user {

class SubmissionQueue;

// What commands find their data with. Lives as long as they do.
struct DataPath {
  door::GuestMemory& memory;
  stream::BufferQueue& buffers;
  uint32_t page_size = 4096;  // CC.MPS
  uint64_t bytes_copied = 0;  // through buffers
};

class PciCommand final : public nvme::Command, public ListHook<> {
 public:
  PciCommand(SubmissionQueue& queue, DataPath& path) : queue_(queue), path_(path) {}

  // nvme::Command
  task::Task<Result<nvme::Pieces>> to_host(size_t bytes) override;
  task::Task<Result<nvme::Pieces>> from_host(size_t bytes) override;
  task::Task<Result<MutableBytes>> scratch(size_t bytes) override;
  std::optional<nvme::Pieces> here_from_host(size_t bytes) override;
  std::optional<nvme::Pieces> here_to_host(size_t bytes) override;
  // The guest's own memory, unless it had to go through a buffer.
  bool has_unstable_memory() const override { return buffered_.empty(); }
  bool borrow(Bytes bytes, task::Gate& keeper) override;
  void complete(const nvme::Cqe& cqe) override;
  task::CancelToken cancel_token() override;

  // The command's own data, copied at once. Else why not, with DNR.
  nvme::Status copy_in(MutableBytes into);
  nvme::Status copy_out(Bytes from);
  // Whether copy_out() of so many would succeed now.
  nvme::Status check_out(size_t bytes) { return find(bytes, true); }

  enum class State : uint8_t {
    kFree,
    kRunning,
    kEnded,  // its completion waits for room in the ring
  };
  State state = State::kFree;
  nvme::Cqe cqe;          // kEnded
  bool owns_id = false;   // its id is its own; else another command has it
  bool is_meant = false;  // by whoever waits for certain commands to end
  void cancel();
  // Whether it holds memory in this range of the guest's.
  bool uses(uint64_t address, uint64_t size) const;
  // See Device: of one that runs.
  void note_writes() const;
  SubmissionQueue& queue() { return queue_; }

 private:
  nvme::Status find(size_t bytes, bool for_writing);
  Result<nvme::Pieces> lend(size_t bytes, bool for_writing);
  bool hold();
  void release();
  void drop_buffer();
  bool needs_buffer() const;

  SubmissionQueue& queue_;
  DataPath& path_;
  std::vector<nvme::HostPiece> where_;
  std::vector<MutableBytes> pieces_;
  std::vector<door::GuestRegion*> regions_;  // of the pieces, one each
  size_t held_ = 0;                          // of regions_
  Buffer buffer_;
  MutableBytes buffered_;
  bool fills_guest_ = false;  // on success the buffer goes to the guest
  bool is_written_ = false;   // its pieces may be written to until it completes
  nvme::Status fault_;        // why the data cannot be reached; success: it can
  std::optional<task::CancelSource> cancel_;
};

}  // namespace cairn::door::vfio_user
