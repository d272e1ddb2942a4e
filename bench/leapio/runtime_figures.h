// SPDX-License-Identifier: Apache-2.0
// Figures 6 and 10: what the runtime costs on the host, and on a co-processor.
#pragma once

#include "base/error.h"
#include "bench/leapio/paper.h"
#include "bench/leapio/scene.h"
#include "report/page.h"

namespace cairn::bench::leapio {

// Adds those that are wanted, all of them simulated (report.h): constants of runtime_scene.h before
// a modelled drive decide them. Ratios, throughput as the mean over all numbers of threads:
//   leap_read_vs_pt, leap_mixed_vs_pt      behind a runtime on the host, over the drive itself
//   leap_p99_vs_pt, leap_p999_vs_pt        latency of reads at 32 threads, likewise
//   soc_local_vs_host, _worst              behind one on a card, over one on the host; at worst
//   soc_remote_vs_host, soc_remote_p99_vs_host  the same of the one in a box
Result<void> show_runtime(const Options& options, const Stage& stage, report::Page& page,
                          Paper& paper);

}  // namespace cairn::bench::leapio
