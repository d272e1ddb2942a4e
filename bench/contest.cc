// SPDX-License-Identifier: Apache-2.0
#include "bench/contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace cairn::bench {

namespace {

std::vector<double> values_of(const Contestant& contestant, const Contest::Value& value) {
  std::vector<double> values;
  for (const ExchangeFigures& each : contestant.rounds) values.push_back(value(each));
  return values;
}

Measurement measurement_of(const Contestant& contestant) {
  Measurement result{.name = contestant.load, .variant = contestant.variant, .unit = "IO/s"};
  result.samples =
      values_of(contestant, [](const ExchangeFigures& each) { return each.per_second; });
  Histogram latency;
  for (const ExchangeFigures& each : contestant.rounds) latency.merge(each.latency_ns);
  result.add_latency(latency);
  const auto add = [&](const char* name, const Contest::Value& value) {
    result.extras.emplace_back(name, median(values_of(contestant, value)));
  };
  add("box_cpu_us", [](const ExchangeFigures& each) { return each.server.cpu_us; });
  add("host_cpu_us", [](const ExchangeFigures& each) { return each.client.cpu_us; });
  add("box_system_calls", [](const ExchangeFigures& each) { return each.server.system_calls; });
  add("host_system_calls", [](const ExchangeFigures& each) { return each.client.system_calls; });
  add("box_sends", [](const ExchangeFigures& each) { return each.server.sends; });
  add("host_sends", [](const ExchangeFigures& each) { return each.client.sends; });
  const Contest::Value strangers = [](const ExchangeFigures& each) {
    return static_cast<double>(each.strangers);
  };
  if (median(values_of(contestant, strangers)) > 0) add("strangers", strangers);
  return result;
}

}  // namespace

void Contest::add(std::string load, std::string variant,
                  std::function<Result<ExchangeFigures>()> run) {
  contestants_.push_back({std::move(load), std::move(variant), std::move(run), {}});
}

Result<void> Contest::run(int rounds, const Progress& progress) {
  for (int round = 0; round < rounds; ++round) {
    for (Contestant& each : contestants_) {
      if (progress) {
        progress(fmt::format("round {} of {}: {} {}", round + 1, rounds, each.load, each.variant));
      }
      Result<ExchangeFigures> figures = each.run();
      if (!figures) return fail(figures.error());
      each.rounds.push_back(std::move(*figures));
    }
  }
  return {};
}

const Contestant* Contest::find(std::string_view load, std::string_view variant) const {
  const auto found = std::ranges::find_if(contestants_, [&](const Contestant& each) {
    return each.load == load && each.variant == variant;
  });
  return found == contestants_.end() ? nullptr : &*found;
}

std::optional<double> Contest::median_of(std::string_view load, std::string_view variant,
                                         const Value& value) const {
  const Contestant* one = find(load, variant);
  if (one == nullptr || one->rounds.empty()) return std::nullopt;
  return median(values_of(*one, value));
}

std::optional<double> Contest::ratio(Side one, Side other, const Value& value) const {
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

void Contest::report_to(Report& report) const {
  for (const Contestant& each : contestants_) report.add(measurement_of(each));
}

}  // namespace cairn::bench
