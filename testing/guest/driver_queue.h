// SPDX-License-Identifier: Apache-2.0
// DriverQueue: a pair of queues from the driver's side, in memory that the device can reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "base/bytes.h"
#include "door/vfio_user/doorbells.h"
#include "env/shared_word.h"
#include "nvme/format/command_format.h"
#include "nvme/format/pci_format.h"

namespace cairn::door::vfio_user {

// Memory of a guest and the address at which its device knows it. Page-aligned both.
struct DriverMemory {
  MutableBytes bytes;
  uint64_t address = 0;

  // A part of it.
  DriverMemory part(uint64_t offset, uint64_t size) const {
    return {.bytes = bytes.subspan(offset, size), .address = address + offset};
  }
};

// Words that doorbells are written to.
struct DriverDoorbells {
  MutableBytes page;    // the device's; empty: a message carries each
  MutableBytes shadow;  // the guest's, for I/O queues; empty: none
  MutableBytes events;  // beside it
  // Without a page: has the value brought to the device. Kept until the queue goes.
  std::function<void(Doorbell doorbell, uint32_t value)> send;
};

// On one core. The memory and the doorbells outlive it.
class DriverQueue {
 public:
  struct Rings {
    uint16_t id = 0;
    uint16_t entries = 2;
    DriverMemory submission;  // of whole pages
    DriverMemory completion;
  };
  DriverQueue(const Rings& rings, const DriverDoorbells& doorbells);

  const Rings& rings() const { return rings_; }
  // Entries that are neither taken back nor free.
  uint16_t in_flight() const { return in_flight_; }
  bool is_full() const { return in_flight_ + 1u >= rings_.entries; }

  // Puts an entry into the ring; there is room. The device sees it after ring().
  void submit(const nvme::Sqe& sqe);
  void ring();

  // Takes completions, at most so many, and says how far it got. Gives their number.
  template <class F>
  size_t poll(F&& on_completion, size_t max = SIZE_MAX) {
    size_t taken = 0;
    while (taken < max && has_completion()) {
      ++taken;
      on_completion(take());
    }
    if (taken > 0) write(Doorbell::head_of(rings_.id), head_before_, head_);
    head_before_ = head_;
    return taken;
  }
  bool has_completion() const;

 private:
  nvme::Cqe take();
  // Rings the real doorbell only for what the device asked to be told of.
  void write(Doorbell doorbell, uint16_t before, uint16_t now);

  Rings rings_;
  const DriverDoorbells& doorbells_;
  uint16_t tail_ = 0;
  uint16_t tail_before_ = 0;  // as last rung
  uint16_t head_ = 0;
  uint16_t head_before_ = 0;
  uint16_t in_flight_ = 0;
  bool phase_ = true;
};

}  // namespace cairn::door::vfio_user
