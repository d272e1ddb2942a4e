// SPDX-License-Identifier: Apache-2.0
// What a Linux guest gets of drives that reach it in several ways, and what that costs the server.
#pragma once

#include "base/error.h"
#include "bench/drive/drive_bench.h"
#include "bench/report.h"

namespace cairn::bench {

// Runs fio in a virtual machine (bench/guest/guest_bench.py, which says how). Lines have IO/s for
// each job and way: `vhost_user` and the same of qemu-storage-daemon, `nbd_emulated_nvme` and
// `nvme_tcp`; extras the latencies in the guest and what a request costs the serving process. Where
// no guest can be had it is skipped, with what to do.
Result<void> bench_guest(const DriveBenchOptions& options, Report& report);

}  // namespace cairn::bench
