// SPDX-License-Identifier: Apache-2.0
// What a controller is for and how its host reaches it; much of what it says and does follows.
#pragma once

#include <cstdint>

namespace cairn::nvme {

enum class ControllerKind : uint8_t {
  kIo,         // of a subsystem, connected over a fabric
  kDiscovery,  // of the discovery service, likewise
  kPci,        // of a subsystem, attached: its queues are in the host's memory
};

}  // namespace cairn::nvme
