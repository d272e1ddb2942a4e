// SPDX-License-Identifier: Apache-2.0
// `cairn bench drive`: what each service and its checkpoints cost, doors beside qemu's, what a
// guest gets, drives that move, and many idle ones.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "bench/report.h"
#include "bench/world_load.h"

namespace cairn::bench {

struct DriveBenchOptions {
  WorldFactory world;  // in which services run
  int rounds = 5;
  double seconds = 0.5;           // of one run over NBD, and four times that of idle drives
  uint64_t requests = 20'000;     // of one run of a service
  std::vector<std::string> only;  // of drive_bench_parts(); empty: all
  int server_cpu = 0;
  int client_cpu = 1;
  std::string program;  // cairn itself, which serves drives in a process of its own
  std::string folder;   // for files that are gone afterwards; room for kServedFileSize
  std::function<void(std::string_view)> progress;  // may be empty

  bool wants(std::string_view part) const;
};

// "services", "checkpoints", "nbd", "vfio", "vhost", "guest", "copies", "move" and "idle".
const std::vector<std::string>& drive_bench_parts();

//   passthrough_iops_vs_bare  a memory drive under `priority`, which holds nothing back here,
//                             against the drive alone: the lower of reads and writes
//   checkpoint_pause_ms       the longest durable write while a service's journal saves a map of
//                             2^19 entries: the median of the rounds; with _small, _medium and
//                             _large, of 2^13, 2^16 and 2^19
//   nbd_iops_per_cpu_vs_qsd   requests per CPU second of `cairn serve` over those of
//                             qemu-storage-daemon, serving the same file to the same fio jobs: the
//                             geometric mean of the jobs, each against qemu's better way of I/O
//   vfio_read_iops_vs_bare, vfio_mixed_iops_vs_bare, vfio_p99_vs_bare, vfio_p999_vs_bare
//                             4 KiB, 32 at once, from a file: what a guest's driver gets through
//                             vfio-user, over the same load on the drive itself; with _memory,
//                             from memory; with _vs_crowded, over the drive beside a busy CPU
//   vhost_driver_iops_per_cpu_vs_qsd
//                             as nbd_iops_per_cpu_vs_qsd, over vhost-user, under the same load of a
//                             driver without a guest
//   vhost_iops_per_cpu_vs_qsd the same with fio in a Linux guest
//   copies_per_io             bytes that the server copies per byte that a guest's driver reads
//   from
//                             or writes to a file, by vfio-user or vhost-user, small requests or
//                             large ones: the most of all; with _nvme_tcp and _memory, likewise
//   move_blackout_ms          the longest time without an answer while `cairn drive move` takes
//                             the layers of a drive to a box or back: the median of the moves
//   idle_cores_200_drives     of a process that serves so many and is asked nothing
// What this machine lacks (qemu-storage-daemon, fio, a guest) is skipped, with what to install.
Result<Report> bench_drive(const DriveBenchOptions& options);

}  // namespace cairn::bench
