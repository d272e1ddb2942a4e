// SPDX-License-Identifier: Apache-2.0
// A part of a modelled drive as a source of drives. The rest of the modelled drive holds data of
// others, who are idle; it needs no memory.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "drive/source.h"
#include "model/flash/parameters.h"

namespace cairn::bench::leapio {

struct Part {
  std::shared_ptr<const flash::Parameters> drive;
  uint64_t drive_bytes = 0;  // it is scaled to these
  uint64_t bytes = 0;        // of the part
  double occupancy = 0;      // of the whole, as random writes would have left it
};

// Errors as drive::Source::make.
Result<std::unique_ptr<drive::Source>> make_part(env::Env& env, const Part& part);

}  // namespace cairn::bench::leapio
