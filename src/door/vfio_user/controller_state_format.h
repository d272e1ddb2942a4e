// SPDX-License-Identifier: Apache-2.0
// What a controller tells its successor, as bytes: a header, then as many of each entry as it says,
// in the order of its counts. Read as hostile input.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nvme/controller/pci_registers.h"
#include "nvme/format/command_format.h"
#include "nvme/format/field.h"

namespace cairn::door::vfio_user {

inline constexpr uint64_t kStateMagic = 0x6574'6174'7365'6d76;  // "vmestate"
inline constexpr uint32_t kStateVersion = 1;

struct StateHeader {
  nvme::Le64 magic;
  nvme::Le32 version;
  nvme::Le32 checksum;  // CRC32C of everything, with this field 0
  nvme::PciRegisters::Values registers;
  nvme::Le64 shadow_doorbells;  // 0: none
  nvme::Le64 shadow_events;
  nvme::Le32 completion_queues;  // StateCompletionQueue, the admin queue's among them
  nvme::Le32 submission_queues;  // StateSubmissionQueue, likewise
  nvme::Le32 untold;             // StateUntold
  nvme::Le32 event_requests;     // Sqe
  nvme::Le32 features;           // StateFeature
  nvme::Le32 reserved;
};
static_assert(sizeof(StateHeader) == 88 && alignof(StateHeader) == 1);

struct StateCompletionQueue {
  nvme::Le64 address;
  nvme::Le16 id;
  nvme::Le16 size;  // zero-based
  nvme::Le16 vector;
  nvme::Le16 head;
  nvme::Le16 tail;
  uint8_t interrupts = 0;
  uint8_t phase = 0;
  nvme::Le32 doorbell;
};
static_assert(sizeof(StateCompletionQueue) == 24);

struct StateSubmissionQueue {
  nvme::Le64 address;
  nvme::Le16 id;
  nvme::Le16 size;  // zero-based
  nvme::Le16 completion;
  nvme::Le16 head;
  nvme::Le32 doorbell;
  nvme::Le32 reserved;
};
static_assert(sizeof(StateSubmissionQueue) == 24);

// A completion that found no room in its ring.
struct StateUntold {
  nvme::Cqe cqe;  // with its submission queue's id
};
static_assert(sizeof(StateUntold) == 16);

// A Set Features that was successful, with its data.
struct StateFeature {
  static constexpr size_t kDataMax = 512;
  nvme::Sqe sqe;
  nvme::Le32 size;
  nvme::Le32 reserved;
  std::array<uint8_t, kDataMax> data{};
};
static_assert(sizeof(StateFeature) == 584);

}  // namespace cairn::door::vfio_user
