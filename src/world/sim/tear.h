// SPDX-License-Identifier: Apache-2.0
// For tests: shared memory that becomes smaller under those who have it mapped.
#pragma once

#include <cstdint>

#include "env/sharing.h"

namespace cairn::sim {

// As if the other side had cut the file behind it to `size`. What is missing reads as zeroes, and
// mappings of it are no longer whole. `memory` is a simulated machine's.
void tear_memory(const env::Descriptor& memory, uint64_t size);

}  // namespace cairn::sim
