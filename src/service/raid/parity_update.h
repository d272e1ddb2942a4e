// SPDX-License-Identifier: Apache-2.0
// ParityUpdate: new content of some legs' blocks of the same rows. It is logged, then put into
// place (parity_log.h).
#pragma once

#include <cstdint>

#include "drive/drive.h"
#include "service/raid/parity_buffers.h"
#include "service/raid/parity_code.h"
#include "service/raid/parity_layout.h"
#include "task/sync.h"

namespace cairn::drive {

struct ParityUpdate {
  RowSpan rows;
  Request::Kind kind = Request::Kind::kWrite;
  bool keep_space = false;
  Priority priority = Priority::kNormal;
  uint64_t position = 0;  // in the log
  SymbolSet legs = 0;     // whose content is known
  ParityBuffers content;  // by leg; none for zeroes
  task::Units units;
  bool is_stuck = false;  // it waits, or did, for a leg that cannot be dropped
  bool is_zeroes() const { return kind != Request::Kind::kWrite; }
};

}  // namespace cairn::drive
