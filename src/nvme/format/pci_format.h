// SPDX-License-Identifier: Apache-2.0
// What only a controller with registers in memory has (NVMe Base 2.0, 3.1.3 and 5; NVMe over PCIe
// 1.0): where its registers and doorbells are, and the commands that make and delete queues.
#pragma once

#include <bit>
#include <cstdint>

#include "nvme/format/command_format.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

// Registers beyond those that Fabrics has as properties.
struct PciRegister {
  static constexpr uint32_t kInterruptMaskSet = 0x0c;    // INTMS
  static constexpr uint32_t kInterruptMaskClear = 0x10;  // INTMC
  static constexpr uint32_t kAdminQueues = 0x24;         // AQA
  static constexpr uint32_t kAdminSubmission = 0x28;     // ASQ, 8 bytes
  static constexpr uint32_t kAdminCompletion = 0x30;     // ACQ, 8 bytes
};

// With CAP.DSTRD 0: the tail of submission queue 0, the head of completion queue 0, the tail of
// submission queue 1 and so on, four bytes each.
inline constexpr uint32_t kDoorbells = 0x1000;
inline constexpr uint32_t kDoorbellSize = 4;

// VID and SSVID, the same as in configuration space: those of the generic NVMe controller of
// virtual machines, which their firmware and drivers know without quirks.
inline constexpr uint16_t kPciVendor = 0x1b36;
inline constexpr uint16_t kPciSubsystemVendor = 0x1af4;

// The unit of CC.MPS and of the addresses of queues.
inline constexpr uint32_t kPageSizeMin = 4096;

// AQA
struct AdminQueueSizes {
  uint16_t submission = 0;  // ASQS: entries, zero-based
  uint16_t completion = 0;  // ACQS

  static constexpr AdminQueueSizes decode(uint32_t aqa) {
    return {.submission = static_cast<uint16_t>(bits<11, 0>(aqa)),
            .completion = static_cast<uint16_t>(bits<27, 16>(aqa))};
  }
  constexpr uint32_t encode() const {
    return to_bits32<11, 0>(submission) | to_bits32<27, 16>(completion);
  }
};

// PRP1 and PRP2 share the place of an SGL descriptor.
struct PrpPair {
  Le64 first;
  Le64 second;

  static constexpr PrpPair decode(const Sqe& sqe) { return std::bit_cast<PrpPair>(sqe.sgl1); }
  constexpr void encode(Sqe& sqe) const {
    sqe.set_psdt(Psdt::kPrp);
    sqe.sgl1 = std::bit_cast<SglDescriptor>(*this);
  }
};
static_assert(sizeof(PrpPair) == sizeof(SglDescriptor));

// Create I/O Completion Queue.
struct CompletionQueueFields {
  uint16_t id = 0;         // QID
  uint16_t size = 0;       // QSIZE: entries, zero-based
  uint16_t vector = 0;     // IV
  bool interrupts = true;  // IEN
  bool contiguous = true;  // PC
  uint64_t address = 0;    // PRP1

  static constexpr CompletionQueueFields decode(const Sqe& sqe) {
    return {.id = static_cast<uint16_t>(bits<15, 0>(sqe.cdw10)),
            .size = static_cast<uint16_t>(bits<31, 16>(sqe.cdw10)),
            .vector = static_cast<uint16_t>(bits<31, 16>(sqe.cdw11)),
            .interrupts = bit<1>(sqe.cdw11),
            .contiguous = bit<0>(sqe.cdw11),
            .address = PrpPair::decode(sqe).first};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.cdw10 = to_bits32<15, 0>(id) | to_bits32<31, 16>(size);
    sqe.cdw11 =
        to_bits32<0, 0>(contiguous) | to_bits32<1, 1>(interrupts) | to_bits32<31, 16>(vector);
    PrpPair{.first = address, .second = {}}.encode(sqe);
  }
};

// Create I/O Submission Queue.
struct SubmissionQueueFields {
  uint16_t id = 0;          // QID
  uint16_t size = 0;        // QSIZE: entries, zero-based
  uint16_t completion = 0;  // CQID
  uint8_t priority = 0;     // QPRIO: of weighted round robin only
  bool contiguous = true;   // PC
  uint64_t address = 0;     // PRP1

  static constexpr SubmissionQueueFields decode(const Sqe& sqe) {
    return {.id = static_cast<uint16_t>(bits<15, 0>(sqe.cdw10)),
            .size = static_cast<uint16_t>(bits<31, 16>(sqe.cdw10)),
            .completion = static_cast<uint16_t>(bits<31, 16>(sqe.cdw11)),
            .priority = static_cast<uint8_t>(bits<2, 1>(sqe.cdw11)),
            .contiguous = bit<0>(sqe.cdw11),
            .address = PrpPair::decode(sqe).first};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.cdw10 = to_bits32<15, 0>(id) | to_bits32<31, 16>(size);
    sqe.cdw11 =
        to_bits32<0, 0>(contiguous) | to_bits32<2, 1>(priority) | to_bits32<31, 16>(completion);
    PrpPair{.first = address, .second = {}}.encode(sqe);
  }
};

// Delete I/O Submission or Completion Queue.
struct DeleteQueueFields {
  uint16_t id = 0;  // QID

  static constexpr DeleteQueueFields decode(const Sqe& sqe) {
    return {.id = static_cast<uint16_t>(bits<15, 0>(sqe.cdw10))};
  }
  constexpr void encode(Sqe& sqe) const { sqe.cdw10 = to_bits32<15, 0>(id); }
};

// Doorbell Buffer Config: two pages of the host, laid out like the doorbells.
struct DoorbellBuffers {
  uint64_t doorbells = 0;      // PRP1: the host writes tails and heads here
  uint64_t event_indexes = 0;  // PRP2: beyond which of these the host has to ring the real one

  static constexpr DoorbellBuffers decode(const Sqe& sqe) {
    const PrpPair pair = PrpPair::decode(sqe);
    return {.doorbells = pair.first, .event_indexes = pair.second};
  }
  constexpr void encode(Sqe& sqe) const {
    PrpPair{.first = doorbells, .second = event_indexes}.encode(sqe);
  }
};

}  // namespace cairn::nvme
