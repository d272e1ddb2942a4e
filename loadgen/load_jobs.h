// SPDX-License-Identifier: Apache-2.0
// One load in several jobs: a drive each, over the cores of a world.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/error.h"
#include "drive/drive.h"
#include "env/env.h"
#include "loadgen/drive_load.h"
#include "task/task.h"

namespace cairn::loadgen {

// Opens the drive of one job on the core it is called on; the job closes it. Called on several
// cores, possibly at once.
using OpenDrive = std::function<task::Task<Result<std::unique_ptr<drive::Drive>>>(env::Env& there)>;

struct LoadJobs {
  OpenDrive open;
  uint32_t jobs = 1;  // on the cores in turn
  LoadWatch watch;    // of the first job
  // Called on a job's own core when its measured time has ended, while its last requests are still
  // outstanding; possibly at once on several cores. May be empty.
  std::function<void(uint32_t job, drive::Drive& drive)> look;
};

// Opens all drives, runs the load on all of them at once and closes them. Each job draws from a
// seed of its own, has its part of the rate and, in sequential order, its part of the range. A
// request that fails ends its job; the others go on. All end with the stop token of their core.
// Errors: those of `open` and run_load; the first job's counts.
task::Task<Result<LoadResult>> run_load_jobs(env::Env& env, const DriveLoad& load,
                                             const LoadJobs& jobs);

}  // namespace cairn::loadgen
