// SPDX-License-Identifier: Apache-2.0
#include "snis/iterations.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::snis {

Iterations::Iterations(const Models& models, std::span<const trace::Record> requests,
                       Storage& storage, const RunOptions& options)
    : models_(models),
      requests_(requests),
      storage_(storage),
      options_(options),
      convergence_(options.rules) {}

bool Iterations::unchanged() const {
  return !steps_.empty() && steps_.back().movement && steps_.back().movement->moved == 0;
}

bool Iterations::done() const {
  if (steps_.empty()) return false;
  if (steps_.size() >= static_cast<size_t>(options_.iterations)) return true;
  switch (options_.until) {
    case Until::kStable:
      return convergence_.at().has_value();
    case Until::kUnchanged:
      return unchanged();
    case Until::kCount:
      break;
  }
  return false;
}

const Step& Iterations::advance(const std::function<void(double)>& told) {
  CHECK(!done(), "there is an iteration to do");
  return take(iterate(models_, requests_, storage_, steps_.empty() ? nullptr : &last_, told));
}

const Step& Iterations::take(Iteration iteration) {
  Step step = describe(requests_, iteration);
  step.number = static_cast<int>(steps_.size());
  if (!steps_.empty()) {
    step.distance = distance(steps_.back().metrics, step.metrics, options_.rules.weights);
    step.movement = movement(requests_, last_.times, iteration.times);
    step.stable = convergence_.add(step.distance->criterion);
  }
  last_ = std::move(iteration);
  return steps_.emplace_back(std::move(step));
}

Step describe(std::span<const trace::Record> requests, const Iteration& iteration) {
  Step step{.metrics = metrics(requests, iteration.times), .network = iteration.network};
  std::vector<double> sorted = throughputs_gbps(requests, iteration.times);
  std::ranges::sort(sorted);
  const size_t points = std::min(sorted.size(), Iterations::kQuantiles);
  for (size_t i = 1; i <= points; ++i) {
    step.throughput_quantiles.push_back(sorted[i * sorted.size() / points - 1]);
  }
  return step;
}

}  // namespace cairn::snis
