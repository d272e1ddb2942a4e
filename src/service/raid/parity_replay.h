// SPDX-License-Identifier: Apache-2.0
// ParityReplay: what the logs of legs hold, and carrying it out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "base/error.h"
#include "service/raid/parity_code.h"
#include "service/raid/parity_epoch.h"
#include "service/raid/parity_format.h"
#include "service/raid/parity_legs.h"
#include "service/raid/parity_shape.h"
#include "task/task.h"

namespace cairn::drive {

class ParityReplay {
 public:
  ParityReplay(const ParityContext& context, ParityLegs& legs, ParityEpoch& epoch)
      : context_(context), legs_(legs), epoch_(epoch) {}

  // Puts into place what all good legs have in their logs, in the order of the log: later entries
  // are about newer content. Once, while there are no updates.
  task::Task<Result<void>> run();

 private:
  struct Logged {
    ParityEntry entry;
    LegSet have = 0;
    std::array<uint32_t, kSymbolsMax> crc{};
  };

  task::Task<Result<void>> read_log(size_t leg);
  task::Task<Result<void>> carry_out(const Logged& logged);

  const ParityContext& context_;
  ParityLegs& legs_;
  ParityEpoch& epoch_;
  std::map<uint64_t, Logged> log_;  // by position
};

}  // namespace cairn::drive
