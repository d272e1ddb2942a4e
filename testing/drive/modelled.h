// SPDX-License-Identifier: Apache-2.0
// A modelled SSD that is small enough for tests.
#pragma once

#include "model/flash/parameters.h"

namespace cairn::drive {

inline flash::Parameters small_ssd() {
  flash::Parameters p;
  p.channels = 2;
  p.chips_per_channel = 1;
  p.dies_per_chip = 1;
  p.planes_per_die = 1;
  p.blocks_per_plane = 64;
  p.pages_per_block = 32;
  p.page_bytes = 4096;
  p.over_provisioning = 0.25;
  p.streams[0].cache = flash::CacheMode::kOff;
  return p;
}

}  // namespace cairn::drive
