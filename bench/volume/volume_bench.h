// SPDX-License-Identifier: Apache-2.0
// `cairn bench volume`: elastic volumes next to plain drives and stripes, in one process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/contest.h"
#include "bench/report.h"
#include "bench/world_load.h"
#include "model/flash/parameters.h"

namespace cairn::bench {

struct VolumeBenchOptions {
  int rounds = 5;
  double seconds = 0.3;           // of one run
  std::vector<std::string> only;  // names from volume_parts(); empty: all
  WorldFactory world;
  std::shared_ptr<const flash::Parameters> flash;      // the modelled drives
  std::shared_ptr<const flash::Parameters> box_drive;  // those of a box that clients share
  Progress progress;
};

// What `only` may name.
const std::vector<std::string>& volume_parts();

// Each part in a world of its own, subjects taking turns in rounds.
Result<Report> bench_volume(const VolumeBenchOptions& options);

// "cost": 4 KiB at depth 32 on drives in memory, on one core. evol_cpu_per_io_vs_plain is the
// processor time of a request to a volume over four drives divided by one to a plain drive in the
// same round, of reads and writes the higher; stripe_cpu_per_io_vs_plain and
// r3_cpu_per_io_vs_plain are the same for a stripe and for a volume of three replicas,
// steered_cpu_per_io_vs_plain for a volume as evol whose requests are counted for a view, ordered
// and held to slices, the market that it trades with in the same process.
Result<void> bench_volume_cost(const VolumeBenchOptions& options, Report& report);

// "speed": modelled drives in virtual time; "live": the same by this machine's clock, whose ratios
// end in _live. A volume over four drives unless the name says _n1, _n2 or _n8. What drives
// hold is not kept, and costs no copies. All of it was written twice, the second time at random.
//   evol_read_vs_one_drive, evol_write_vs_one_drive   bytes per second by those of one drive: 1 MiB
//                          at random places, 16 at once for each drive; so at most the drives
//   evol_p50_vs_plain, evol_p99_vs_plain   latency by that of one drive: 4 KiB reads, 16 at once in
//                          both. evol_write_*: writes
//   evol_vs_stripe_LOAD    requests per second by those of a stripe over as many drives, chunks of
//                          64 KiB
//   r3_read_vs_r1          median latency of 4 KiB reads, 16 at once, by that of one replica
Result<void> bench_volume_speed(const VolumeBenchOptions& options, Report& report);
Result<void> bench_volume_live(const VolumeBenchOptions& options, Report& report);

// "rebuild": in virtual time, a volume all of which leaves one modelled drive for another.
// rebuild_vs_copy is its bytes per second by those of a plain copy between two such drives, eight
// pieces of 256 KiB at a time; rebuild_foreground_p99 the p99 of 4,000 reads of 4 KiB a second
// meanwhile, by that before.
Result<void> bench_volume_rebuild(const VolumeBenchOptions& options, Report& report);

// "growth": an arbiter with its metadata in memory, at three sizes, VOLUMESxEXTENTS of each:
// extents given away per second by calls of 64, the time until one that starts leads, and its
// memory without the store's. table_bytes_per_extent is what the heap grows by when a volume of 1
// TiB is opened, by its extents.
Result<void> bench_volume_growth(const VolumeBenchOptions& options, Report& report);

// "share": in virtual time, volumes that share modelled drives of a box which speaks NVMe over TCP
// (flow_scene.h), with the view, the order and the auction ("on"), without ("off"), and each
// without one of them. A run has ten times the seconds of others, after 40 epochs in which shares
// settle.
//   share_error_equal, share_error_weights   how far the worst part is from what it should be, by
//                          that: four volumes with 4 to 64 requests, three with weights 1:2:4
//   floor_error            what a promise lacks of it beside four who read and write 128 KiB
//   scheduler_throughput_cost   what a volume alone does less than without all of it, by that
//   victim_p50_gain, ...   latency of 4 KiB reads, one at a time, beside four who read 128 KiB, off
//                          by on; victim_of_writes_*: who write
//   avoid_latency_read, avoid_latency_write   mean latency of 32 KiB to a volume that was made
//                          while one drive of four was busy, by that where placement did not look
//   congested_*_vs_lvm     bytes per second of 1 MiB where two drives of eight are busy, by those
//   of
//                          a stripe over all eight: writes, and with 30% and 50% reads
Result<void> bench_volume_share(const VolumeBenchOptions& options, Report& report);

// "view": by this machine's clock, over its loopback, the market and the view of an arbiter with a
// box of 24 drives and eight clients on one core with it, which tell of 100,000 requests a second
// and ask for slices of all drives each epoch.
//   view_query_p50_us      all components and a volume's flows; view_sync_p50_us the five
//   components
//                          of a request; next to a call with nothing in it ("empty_call")
//   arbiter_cores_at_100k_iops   processor time by time, that of the clients' ends included
Result<void> bench_volume_view(const VolumeBenchOptions& options, Report& report);

}  // namespace cairn::bench
