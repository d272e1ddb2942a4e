// SPDX-License-Identifier: Apache-2.0
// `cairn bench paper snis`: the evaluation of "SNIS: Storage-Network Iterative Simulation for
// Disaggregated Storage Systems" with our models, beside the paper's values, and beside the truth
// that the paper does not have: both models in one loop.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/paper.h"
#include "snis/system.h"

namespace cairn::bench::snis_paper {

struct Options {
  snis::System system;  // one target, ten initiators
  uint64_t requests = 10'000;
  int iterations = 11;
  int seed = 1;
  bool fixed_points = true;          // iterate each trace until nothing moves; takes minutes
  std::vector<std::string> only;     // names of traces; empty: all
  std::vector<std::string> figures;  // of figures(); empty: all, and Table II

  bool wants(std::string_view figure) const;
  std::function<void(std::string_view)> progress;  // may be empty
};

// The names that `only` and `figures` may have.
std::vector<std::string> traces();
std::vector<std::string> figures();

// `options.system` passed its check.
//   snis_heavy_s                      processor seconds of all iterations of F_t_h
//   coupled_vs_iterated_differences   requests that differ at the fixed points, of all traces
Paper bench_paper(const Options& options);
// The numbers alone.
void bench_snis(const Options& options, Report& report);

}  // namespace cairn::bench::snis_paper
