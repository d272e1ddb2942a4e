// SPDX-License-Identifier: Apache-2.0
// What the scheduler and the auction call drives, streams and those who compete for drives.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/units.h"
#include "view/types.h"

namespace cairn::share {

using view::IoType;

// A drive, and a port of a box, as whoever owns the scheduler or auction numbers them.
using DriveId = Id<struct DriveIdTag, uint32_t>;
using PortId = Id<struct PortIdTag, uint32_t>;
// Requests of one stream go in the order in which they came.
using StreamId = Id<struct StreamIdTag, uint32_t>;

// What a request costs a drive, in weighted bytes: a written byte costs as much as the drive's
// write cost says. One that moves no bytes costs as much as the smallest block.
constexpr uint64_t weighted(IoType type, uint64_t bytes, uint32_t write_cost_x10) {
  constexpr uint64_t kCountedMin = 4096;
  const uint64_t counted = bytes < kCountedMin ? kCountedMin : bytes;
  return type == IoType::kWrite ? counted * write_cost_x10 / 10 : counted;
}

}  // namespace cairn::share
