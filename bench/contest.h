// SPDX-License-Identifier: Apache-2.0
// Contest: contestants that take turns, so that a noisy moment of the machine hits all alike.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "bench/exchange_figures.h"
#include "bench/report.h"

namespace cairn::bench {

// One way to carry one load, and what it did in each round so far.
struct Contestant {
  std::string load;     // "read4k_qd32"
  std::string variant;  // "bare"
  std::function<Result<ExchangeFigures>()> run;
  std::vector<ExchangeFigures> rounds;
};

class Contest {
 public:
  using Progress = std::function<void(std::string_view)>;  // may be empty
  using Value = std::function<double(const ExchangeFigures&)>;

  void add(std::string load, std::string variant, std::function<Result<ExchangeFigures>()> run);
  // Everybody once per round, in the order they were added. The first error ends it.
  Result<void> run(int rounds, const Progress& progress);

  bool empty() const { return contestants_.empty(); }
  // Null when there is none.
  const Contestant* find(std::string_view load, std::string_view variant) const;
  // The middle of one's values; nothing when it did not take part.
  std::optional<double> median_of(std::string_view load, std::string_view variant,
                                  const Value& value) const;
  // The median of the ratios within the rounds, which share their noise. Nothing when one of the
  // two did not take part or no round has a ratio.
  struct Side {
    std::string_view load;
    std::string_view variant;
  };
  std::optional<double> ratio(Side one, Side other, const Value& value) const;

  // A line for each: operations per second, latencies, and what each side spent.
  void report_to(Report& report) const;

 private:
  std::vector<Contestant> contestants_;
};

}  // namespace cairn::bench
