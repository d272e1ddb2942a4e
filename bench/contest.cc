// SPDX-License-Identifier: Apache-2.0
#include "bench/contest.h"

namespace cairn::bench {

namespace {

Measurement measurement_of(const Contest::Contestant& contestant) {
  Measurement result =
      contestant.line("IO/s", [](const ExchangeFigures& each) { return each.per_second; });
  result.add_latency(contestant.merged(&ExchangeFigures::latency_ns));
  const auto add = [&](const char* name, const Contest::Value& value) {
    result.extras.emplace_back(name, median(contestant.values(value)));
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
  if (median(contestant.values(strangers)) > 0) add("strangers", strangers);
  return result;
}

}  // namespace

void report_exchanges(const Contest& contest, Report& report) {
  for (const Contest::Contestant& each : contest.contestants()) report.add(measurement_of(each));
}

}  // namespace cairn::bench
