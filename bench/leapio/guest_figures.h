// SPDX-License-Identifier: Apache-2.0
// Figures 7 to 9: RocksDB with a YCSB-like load on ext4 in a Linux guest, whose disk is served in
// several ways. Live, in a virtual machine without help of the processor: the numbers differ from
// run to run, and the page says what was emulated.
//
//   leap_ycsb_vs_fv        operations per second through our vhost-user door, over QEMU's emulated
//                          NVMe controller: the geometric mean of workloads and numbers of threads
//   leap_ycsb_vs_vh        the same over qemu-storage-daemon's vhost-user door
//   leap_remote_vs_kernel  on a drive of a box: our host behind our door, over the guest's own
//                          NVMe/TCP host
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "bench/leapio/paper.h"
#include "bench/paper.h"
#include "report/page.h"

namespace cairn::bench::leapio {

// What one way did under one load; vectors have a number for each round.
struct GuestRow {
  std::string way;       // as bench/guest/ycsb_guest.py names them
  std::string workload;  // "c": reads only; "a": as many updates
  int threads = 0;
  std::vector<double> per_second;
  double read_p50_us = 0;
  double read_p99_us = 0;
  double read_p999_us = 0;
  double server_cpu_us = 0;  // for each operation; 0: not known
};

// What the tool has written, from which rows that are not whole are left out. kInvalid: no rows.
Result<std::vector<GuestRow>> parse_guest_rows(std::string_view text);
// The sentence it has written instead; empty when there is none.
std::string parse_guest_problem(std::string_view text);

// Those of figures 7 to 9 that are wanted, from rows of all ways they need.
void put_guest_figures(const Options& options, const std::vector<GuestRow>& rows,
                       report::Page& page, Paper& paper);

// Runs the guest and puts the figures. When no figure was named they are left out where QEMU is
// missing; a figure that was named and cannot be had is skipped with what to do, on the page too.
// Errors: of files in `options.folder`.
Result<void> show_guest_figures(const Options& options, report::Page& page, Paper& paper);

}  // namespace cairn::bench::leapio
