// SPDX-License-Identifier: Apache-2.0
// What a guest gets of a drive through vfio-user, beside the drive itself.
#pragma once

#include "base/error.h"
#include "bench/drive/drive_bench.h"
#include "bench/report.h"

namespace cairn::bench {

Result<void> bench_vfio(const DriveBenchOptions& options, Report& report);

}  // namespace cairn::bench
