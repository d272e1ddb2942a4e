// SPDX-License-Identifier: Apache-2.0
// `cairn bench paper i10`: the evaluation of "TCP ~ RDMA: CPU-efficient Remote Storage Access with
// i10" (NSDI 2020) with our host and box, each figure next to the paper's own ratios.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "bench/paper.h"
#include "bench/world_load.h"

namespace cairn::bench::i10 {

struct Options {
  WorldFactory world;
  WorldFactory epoll_world;  // for the parts of processor time, which only separate calls show
  int rounds = 3;
  double seconds = 0.4;
  std::vector<std::string> only;  // of experiments(); empty: all
  int box_cpu = 0;
  int host_cpu = 1;
  uint64_t memory = 128_MiB;                       // of each box
  std::function<void(std::string_view)> progress;  // may be empty
};

// What `only` may name: "ablation", "components", "mixes", "targets", "sizes", "load", "depth1".
const std::vector<std::string>& experiments();

// Runs the experiments one after the other; within one all contestants take turns.
Result<Paper> bench_paper(const Options& options);

}  // namespace cairn::bench::i10
