// SPDX-License-Identifier: Apache-2.0
// Contest: contestants that take turns, so that a noisy moment of the machine hits all alike.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/histogram.h"
#include "bench/exchange_figures.h"
#include "bench/report.h"

namespace cairn::bench {

using Progress = std::function<void(std::string_view)>;  // may be empty

// `Figures` is what a contestant did in one round. With one contestant it is a number of rounds.
template <class Figures>
class ContestOf {
 public:
  using Run = std::function<Result<Figures>()>;
  using Value = std::function<double(const Figures&)>;

  // One way to carry one load, and what it did in each round so far.
  struct Contestant {
    std::string load;     // "read4k_qd32"
    std::string variant;  // "bare"
    Run run;
    std::vector<Figures> rounds = {};

    std::vector<double> values(const Value& value) const {
      std::vector<double> all;
      all.reserve(rounds.size());
      for (const Figures& each : rounds) all.push_back(value(each));
      return all;
    }
    template <class Parts = Figures>
    Histogram merged(Histogram Parts::* part) const {
      Histogram all;
      for (const Figures& each : rounds) all.merge(each.*part);
      return all;
    }
    // A line of a report, with a sample for each round.
    Measurement line(std::string unit, const Value& value) const {
      Measurement measured{.name = load, .variant = variant, .unit = std::move(unit)};
      measured.samples = values(value);
      return measured;
    }
  };

  // In each round everybody has one turn.
  enum class Order {
    kAsAdded,
    kThereAndBack,  // whoever comes late in one round comes early in the next
  };

  void add(std::string load, std::string variant, Run run) {
    contestants_.push_back({std::move(load), std::move(variant), std::move(run)});
  }
  // The first error ends it.
  Result<void> run(int rounds, const Progress& progress, Order order = Order::kAsAdded) {
    for (int round = 0; round < rounds; ++round) {
      const bool is_back = order == Order::kThereAndBack && round % 2 == 1;
      for (size_t turn = 0; turn < contestants_.size(); ++turn) {
        Contestant& each = contestants_[is_back ? contestants_.size() - 1 - turn : turn];
        if (progress) {
          progress(fmt::format("round {} of {}: {}{}{}", round + 1, rounds, each.load,
                               each.variant.empty() ? "" : " ", each.variant));
        }
        Result<Figures> figures = each.run();
        if (!figures) return fail(figures.error());
        each.rounds.push_back(std::move(*figures));
      }
    }
    return {};
  }

  bool empty() const { return contestants_.empty(); }
  // In the order they were added.
  const std::vector<Contestant>& contestants() const { return contestants_; }
  // Null when there is none.
  const Contestant* find(std::string_view load, std::string_view variant) const {
    const auto found = std::ranges::find_if(contestants_, [&](const Contestant& each) {
      return each.load == load && each.variant == variant;
    });
    return found == contestants_.end() ? nullptr : &*found;
  }
  // The middle of one's values; nothing when it did not take part.
  std::optional<double> median_of(std::string_view load, std::string_view variant,
                                  const Value& value) const {
    const Contestant* one = find(load, variant);
    if (one == nullptr || one->rounds.empty()) return std::nullopt;
    return median(one->values(value));
  }
  // The median of the ratios within the rounds, which share their noise. Nothing when one of the
  // two did not take part or no round has a ratio.
  struct Side {
    std::string_view load;
    std::string_view variant;
  };
  std::optional<double> ratio(Side one, Side other, const Value& value) const {
    const Contestant* above = find(one.load, one.variant);
    const Contestant* below = find(other.load, other.variant);
    if (above == nullptr || below == nullptr) return std::nullopt;
    std::vector<double> ratios;
    for (size_t i = 0; i < std::min(above->rounds.size(), below->rounds.size()); ++i) {
      const double ratio = value(above->rounds[i]) / value(below->rounds[i]);
      if (std::isfinite(ratio)) ratios.push_back(ratio);
    }
    if (ratios.empty()) return std::nullopt;
    return median(std::move(ratios));
  }

 private:
  std::vector<Contestant> contestants_;
};

// Of pairs of processes, a client and a server.
using Contest = ContestOf<ExchangeFigures>;

// A line for each: operations per second, latencies, and what each side spent.
void report_exchanges(const Contest& contest, Report& report);

}  // namespace cairn::bench
