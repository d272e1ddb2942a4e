// SPDX-License-Identifier: Apache-2.0
// Counts heap allocations by replacing operator new. Linked where allocation_count() is used.
#pragma once

#include <cstdint>

namespace cairn::bench {

// How often this thread has called operator new.
uint64_t allocation_count();

}  // namespace cairn::bench
