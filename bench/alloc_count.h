// SPDX-License-Identifier: Apache-2.0
// Counts heap allocations by replacing operator new. Linked where allocation_count() is used.
#pragma once

#include <cstdint>

namespace cairn::bench {

// How often this thread has called operator new. Stays 0 under sanitizers, which replace it
// themselves and pool no coroutine frames.
uint64_t allocation_count();
bool counts_allocations();

}  // namespace cairn::bench
