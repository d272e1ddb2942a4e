// SPDX-License-Identifier: Apache-2.0
// How a door learns of what a guest puts into queues in its memory.
#pragma once

#include <cstdint>

namespace cairn::door {

enum class Waiting : uint8_t {
  kInterrupt,  // sleeps until the guest says so
  kAdaptive,   // looks for a while after it found something, then sleeps
  kPolling,    // never sleeps
};

}  // namespace cairn::door
