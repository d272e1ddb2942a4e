// SPDX-License-Identifier: Apache-2.0
// ControllerState: what a controller tells its successor in another process, which may be of
// another architecture.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/vfio_user/controller_state_format.h"
#include "nvme/format/pci_format.h"

namespace cairn::door::vfio_user {

struct ControllerState {
  nvme::PciRegisters::Values registers;
  nvme::DoorbellBuffers shadow;
  std::vector<StateCompletionQueue> completion;
  std::vector<StateSubmissionQueue> submission;
  std::vector<StateUntold> untold;
  std::vector<nvme::Sqe> event_requests;
  std::vector<StateFeature> features;

  std::vector<std::byte> encode() const;
  // kCorrupt: these are no such bytes, or damaged; kUnsupported: of another version.
  static Result<ControllerState> decode(Bytes bytes);
};

}  // namespace cairn::door::vfio_user
