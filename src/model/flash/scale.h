// SPDX-License-Identifier: Apache-2.0
// A drive of the same kind and another size.
#pragma once

#include <cstdint>
#include <optional>

#include "model/flash/parameters.h"

namespace cairn::flash {

// What the first stream of such a drive can store. `parameters` passed check().
uint64_t logical_bytes(const Parameters& parameters);

// The same drive with as few blocks per plane as hold so many bytes, so that it collects garbage
// as the whole one would when that is as full. A drive needs a few spare blocks: very small ones
// store more than was asked for. Nothing when the whole drive does not hold so much.
std::optional<Parameters> scaled_to(const Parameters& parameters, uint64_t bytes);

}  // namespace cairn::flash
