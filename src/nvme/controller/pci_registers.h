// SPDX-License-Identifier: Apache-2.0
// PciRegisters: the registers of a controller as a driver finds them in memory (NVMe Base 2.0,
// 3.1.3), without the doorbells, and what the controller owes the driver that wrote them.
//
// A driver writes CC and polls CSTS. Enabling, resetting and shutting down take the controller
// time: next() says which of them is due, the controller does it and says how it went, and CSTS
// changes then. What the driver writes meanwhile is due afterwards, so that a reset is never
// skipped because the driver enabled again at once.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "nvme/controller/properties.h"
#include "nvme/format/pci_format.h"
#include "nvme/format/property_format.h"

namespace cairn::nvme {

class PciRegisters {
 public:
  // Pages of up to 64 KiB.
  static constexpr uint8_t kPageSizeMax = 4;

  explicit PciRegisters(uint16_t queue_entries_max)
      : options_{.queue_entries_max = queue_entries_max, .page_size_max = kPageSizeMax} {}

  // Any bytes of the registers, at any alignment; there are zeroes where there is none.
  void read(uint32_t offset, MutableBytes into) const;
  // Aligned writes of 4 or 8 bytes; others, and writes to what is read-only or unknown, change
  // nothing.
  void write(uint32_t offset, Bytes from);

  enum class Step : uint8_t { kNone, kReset, kShutDown, kEnable };
  Step next() const;
  // The controller's answers. Every command has ended, every queue is gone, RDY falls.
  void was_reset();
  // What was acknowledged is durable.
  void was_shut_down() { status_.shutdown = ShutdownStatus::kComplete; }
  // The admin queue is in place, RDY rises.
  void was_enabled() { status_.ready = true; }
  // CFS, until the driver resets: the controller cannot go on.
  void fail() { status_.fatal = true; }

  // Whether commands are to be taken: ready, not failed, and no reset is due.
  bool is_running() const { return status_.ready && !status_.fatal && !reset_due_; }
  bool is_ready() const { return status_.ready; }
  bool has_failed() const { return status_.fatal; }

  // Whether what the driver has set is something the controller can be enabled with.
  bool can_enable() const;
  uint32_t page_size() const { return kPageSizeMin << configuration().page_size; }
  AdminQueueSizes admin_sizes() const { return AdminQueueSizes::decode(values_.admin_sizes); }
  uint64_t admin_submission() const { return values_.admin_submission; }
  uint64_t admin_completion() const { return values_.admin_completion; }
  // Of interrupts that are not MSI-X, by vector.
  uint32_t interrupt_mask() const { return values_.interrupt_mask; }

  // What is kept while a controller moves to another process.
  struct Values {
    Le32 configuration;
    Le32 status;
    Le32 interrupt_mask;
    Le32 admin_sizes;
    Le64 admin_submission;
    Le64 admin_completion;
  };
  static_assert(sizeof(Values) == 32);
  Values save() const;
  // Any values: what was not possible before is due, or has failed, afterwards.
  void restore(const Values& values);

 private:
  static constexpr uint32_t kImageSize = 0x70;
  Configuration configuration() const { return Configuration::decode(values_.configuration); }
  void configure(uint32_t value);
  void write_word(uint32_t offset, uint32_t value);

  Properties::Options options_;
  Values values_;
  ControllerStatus status_;
  bool reset_due_ = false;
};

}  // namespace cairn::nvme
