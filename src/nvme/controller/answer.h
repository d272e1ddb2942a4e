// SPDX-License-Identifier: Apache-2.0
// Answer: how an admin command ended.
#pragma once

#include <cstdint>

#include "nvme/format/status_format.h"

namespace cairn::nvme {

struct Answer {
  Status status;
  uint64_t result = 0;  // dwords 0 and 1 of the completion

  bool ok() const { return status.ok(); }
};

// The same command would fail again.
constexpr Answer refused(StatusCode code) { return {.status = final_status(code)}; }
constexpr Answer answered(uint64_t result = 0) { return {.status = {}, .result = result}; }

}  // namespace cairn::nvme
