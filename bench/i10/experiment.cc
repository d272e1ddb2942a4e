// SPDX-License-Identifier: Apache-2.0
#include "bench/i10/experiment.h"

#include <fmt/format.h>

#include <cmath>

namespace cairn::bench::i10 {

Stage::Stage(const Options& options, const WorldFactory& world)
    : options_(options),
      boxes_({.world = world,
              .box_cpu = options.box_cpu,
              .host_cpu = options.host_cpu,
              .memory = options.memory}) {}

loadgen::DriveLoad Stage::load() const {
  return {.read_share = 1,
          .request_size = 4_KiB,
          .depth = 128,
          .warm_up = Duration::from_seconds(options_.seconds / 5),
          .duration = Duration::from_seconds(options_.seconds)};
}

Result<void> Stage::add(std::string name, std::string_view variant, const BoxKind& kind,
                        const loadgen::DriveLoad& load, HostSetup host) {
  Result<FabricPair*> pair = boxes_.get(kind);
  if (!pair) return fail(pair.error());
  host.poll = kind.poll;
  host.doorbell = kind.doorbell;
  host.time_calls = kind.time_calls;
  contest_.add(std::move(name), std::string(variant),
               [pair = *pair, load, host] { return pair->carry(load, host); });
  return {};
}

void Showing::ratio(const std::string& name, std::optional<double> value) {
  if (value && std::isfinite(*value)) figures_.add_ratio(name, *value);
}

void Showing::chart(std::string name, std::string svg, std::string_view caption) {
  page_.figure(svg, caption);
  charts_.push_back({std::move(name), std::move(svg)});
}

double per_second(const ExchangeFigures& figures) { return figures.per_second; }
double per_cpu_second(const ExchangeFigures& figures) { return 1e6 / figures.cpu_us(); }
double p50_us(const ExchangeFigures& figures) {
  return static_cast<double>(figures.latency_ns.p50()) / 1e3;
}
double p99_us(const ExchangeFigures& figures) {
  return static_cast<double>(figures.latency_ns.p99()) / 1e3;
}

std::string cell(std::optional<double> value, int decimals) {
  if (!value || !std::isfinite(*value)) return "-";
  return fmt::format("{:.{}f}", *value, decimals);
}

}  // namespace cairn::bench::i10
