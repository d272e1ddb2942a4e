// SPDX-License-Identifier: Apache-2.0
// `cairn bench paper leapio`: figures of "LeapIO: Efficient and Portable Virtual NVMe Storage on
// ARM SoCs" (ASPLOS 2020), drawn with Cairn: 6 and 10, what the runtime costs (runtime_figures.h);
// 7 to 9, RocksDB in a guest (guest_figures.h); and 11, "Service features": latency distributions
// of a search engine's reads on modelled drives composed of services.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "bench/paper.h"
#include "model/flash/parameters.h"

namespace cairn::bench::leapio {

struct Options {
  std::shared_ptr<const flash::Parameters> drive;  // passed its check
  double seconds = 2;                              // that each scene is measured
  uint64_t seed = 1;
  std::vector<std::string> figures;                // of figures(); empty: all
  std::function<void(std::string_view)> progress;  // may be empty
  // Of figures 7 to 9, which are live.
  std::string program;       // cairn
  std::string folder;        // for some files, of 1 to 2 GiB in all
  int guest_keys = 20'000;   // records of the database in the guest
  double guest_seconds = 3;  // that each load is measured

  bool wants(std::string_view figure) const;
};

// "6" to "10", and "11a" to "11f".
std::vector<std::string> figures();

// Simulated, in virtual time: the same options give the same numbers; not so figures 7 to 9 and
// their ratios (guest_figures.h).
//   priority_p99_vs_solo  search beside batch under `priority`, over search alone, at P99
//   batch_floor           what batch moves beside search under `priority`, over batch alone
//     both at 40,000 lookups a second; _5k and _20k: at fewer; _aged: on a drive that collects
//     garbage; _5k_floor: with no more than its floor for batch; _5k_suspend: on a drive that
//     suspends programs sooner
//   raid0_vs_single       bytes per second of reads and writes, 7 to 1, on a stripe of two remote
//                         drives, over one remote drive; raid1_vs_single: on a mirror; _mixed: 1:1
//   channels_p99_vs_solo  reads beside a tenant that writes on other channels, over reads alone
// Errors: those of scene.h.
Result<Paper> bench_paper(const Options& options);

}  // namespace cairn::bench::leapio
