// SPDX-License-Identifier: Apache-2.0
// RuntimeDrive: what it costs that a runtime stands between a guest's queues and a drive, as the
// paper has it: one core that looks in turn for new commands and for ended ones.
#pragma once

#include <memory>

#include "base/units.h"
#include "drive/drive.h"
#include "drive/source.h"
#include "env/env.h"

namespace cairn::bench::leapio {

struct RuntimeCosts {
  Duration access;    // each time that a queue is looked at or written to, for all that is there
  Duration submit;    // of each command, on its way to the drive
  Duration complete;  // and on its way back
};

// A drive with a runtime before it. In virtual time: the costs are all that passes.
std::unique_ptr<drive::Drive> with_runtime(env::Env& env, std::unique_ptr<drive::Drive> below,
                                           const RuntimeCosts& costs);

// Opens the drives of another source so.
std::unique_ptr<drive::Source> with_runtime(std::unique_ptr<drive::Source> source,
                                            const RuntimeCosts& costs);

}  // namespace cairn::bench::leapio
