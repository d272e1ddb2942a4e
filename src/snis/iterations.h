// SPDX-License-Identifier: Apache-2.0
// Iterations: one after the other, from the first to the one that is enough, and what each of them
// found.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "snis/convergence.h"
#include "snis/iteration.h"
#include "snis/metrics.h"

namespace cairn::snis {

enum class Until : uint8_t {
  kCount,      // all iterations that were asked for, as the paper's figures have them
  kStable,     // one of the paper's stop rules
  kUnchanged,  // nothing moves any more
};

struct RunOptions {
  StopRules rules;
  Until until = Until::kStable;
  int iterations = 11;  // at most; iteration 0 counts
};

// One iteration, without the times of its requests.
struct Step {
  int number = 0;
  Metrics metrics;
  NetworkFacts network;
  std::vector<double>
      throughput_quantiles;  // Gbps that 1/n, 2/n, ... of the requests do not exceed
  // From iteration 1 on, against the one before.
  std::optional<Distance> distance;
  std::optional<Movement> movement;
  Stable stable = Stable::kNo;
};

class Iterations {
 public:
  static constexpr size_t kQuantiles = 200;

  // All outlive it.
  Iterations(const Models& models, std::span<const trace::Record> requests, Storage& storage,
             const RunOptions& options);

  bool done() const;
  // Simulates the next iteration; not after done(). `told` as run_network's.
  const Step& advance(const std::function<void(double)>& told = {});
  // Takes the next iteration as it was simulated before.
  const Step& take(Iteration iteration);

  const std::vector<Step>& steps() const { return steps_; }
  // The last one; there is one after the first advance().
  const Iteration& last() const { return last_; }
  // By the paper's rules, whether or not the run stopped there.
  const Convergence& convergence() const { return convergence_; }
  bool unchanged() const;

 private:
  const Models& models_;
  std::span<const trace::Record> requests_;
  Storage& storage_;
  RunOptions options_;
  Convergence convergence_;
  std::vector<Step> steps_;
  Iteration last_;
};

// What a step tells of an iteration by itself.
Step describe(std::span<const trace::Record> requests, const Iteration& iteration);

}  // namespace cairn::snis
