// SPDX-License-Identifier: Apache-2.0
// Copies between namespaces, or within one.
#pragma once

#include <cstdint>

#include "apps/nvme/progress.h"
#include "base/problem.h"
#include "drive/drive.h"
#include "env/env.h"
#include "fabric/host/remote_drive.h"
#include "task/task.h"

namespace cairn::apps {

struct CopyPlan {
  uint64_t from = 0;  // bytes, whole blocks of both drives
  uint64_t to = 0;
  uint64_t length = 0;
  bool by_target = false;  // both are one namespace, whose target can copy by itself
  bool durable = false;    // each write; else there is a flush at the end
};
struct CopyResult {
  uint64_t bytes_by_target = 0;  // the others went through this host
};

// All bytes are at their new place and durable. What the target would not copy itself is read and
// written; zeroes take no space there.
task::Task<Attempt<CopyResult>> copy_range(env::Env& env, drive::Drive& source,
                                           fabric::RemoteDrive& target, CopyPlan plan,
                                           Progress& progress);

// Reads both and compares them; the Problem names the first byte that differs.
task::Task<Attempt<void>> compare_ranges(env::Env& env, drive::Drive& source, drive::Drive& target,
                                         CopyPlan plan, Progress& progress);

}  // namespace cairn::apps
