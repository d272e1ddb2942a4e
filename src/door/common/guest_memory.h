// SPDX-License-Identifier: Apache-2.0
// GuestMemory: a guest's physical memory as a door reaches it. Address translation for everything
// that the guest's drivers put into queues.
//
// The guest's side lists and takes away regions at any time, also under I/O; whoever uses a piece
// of memory beyond the current call holds its region until it is done. Addresses are hostile: they
// may be anything, wrap around, or cross the end of a region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "env/sharing.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::door {

// One region, and who uses it.
class GuestRegion {
 public:
  GuestRegion(uint64_t address, std::unique_ptr<env::SharedMemory> memory, bool writable)
      : address_(address), memory_(std::move(memory)), writable_(writable) {}

  uint64_t address() const { return address_; }
  uint64_t size() const { return memory_->bytes().size(); }
  bool is_writable() const { return writable_; }
  const env::SharedMemory& memory() const { return *memory_; }
  // Entered by those who use its bytes while they wait for something.
  task::Gate& users() { return users_; }

 private:
  friend class GuestMemory;
  uint64_t address_;
  std::unique_ptr<env::SharedMemory> memory_;
  bool writable_;
  task::Gate users_;
};

// On one core.
class GuestMemory {
 public:
  // The most regions a guest may list.
  static constexpr size_t kRegionsMax = 1024;

  // What an address stands for: its region, and bytes of it.
  struct Piece {
    GuestRegion* region = nullptr;
    MutableBytes bytes;
    bool is_valid() const { return region != nullptr; }
  };

  // Told of every range that is found for writing, before its bytes change.
  class WriteLog {
   public:
    virtual void note(uint64_t address, uint64_t length) = 0;

   protected:
    ~WriteLog() = default;
  };
  // Null: nobody is told.
  void set_write_log(WriteLog* log) {
    write_log_ = log;
    forget_pointers();
  }
  // Tells the log, if there is one, of a range that was found before and may still be written.
  void note_write(uint64_t address, uint64_t length) {
    if (write_log_ != nullptr) write_log_->note(address, length);
  }
  // Who keeps pointers looks them up again, as if regions had changed.
  void forget_pointers() { ++generation_; }

  // kExists: it overlaps another; kLimit; kInvalid: empty, or beyond the last address.
  Result<void> add(uint64_t address, std::unique_ptr<env::SharedMemory> memory,
                   bool writable = true);
  // Takes out the regions that lie wholly in the range, at once, and waits until nobody uses them.
  //
  // kNotFound: there is none; kInvalid: a region lies partly in the range, or the range beyond the
  // last address, and nothing is taken.
  task::Task<Result<void>> remove(uint64_t address, uint64_t size);
  // All of them.
  task::Task<void> clear();

  // `length` bytes that follow each other in one region; else invalid. `for_writing`: the device
  // writes there. No bytes of a region are a valid piece too. The last region found is looked at
  // first.
  Piece find(uint64_t address, uint64_t length, bool for_writing = true);
  // As many of `length` bytes as lie in the region of `address`; invalid when it is in none.
  Piece find_front(uint64_t address, uint64_t length, bool for_writing = true);

  // Changes whenever regions come or go, and when pointers are to be forgotten: who keeps pointers
  // looks them up again.
  uint64_t generation() const { return generation_; }
  const std::vector<std::unique_ptr<GuestRegion>>& regions() const { return regions_; }

 private:
  using Regions = std::vector<std::unique_ptr<GuestRegion>>;
  // The first region that begins after `address`.
  Regions::iterator after(uint64_t address);
  GuestRegion* region_of(uint64_t address);
  Regions take(Regions::iterator first, Regions::iterator last);

  Regions regions_;  // by address; none overlap
  GuestRegion* last_ = nullptr;
  WriteLog* write_log_ = nullptr;
  uint64_t generation_ = 0;
};

}  // namespace cairn::door
