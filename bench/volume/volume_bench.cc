// SPDX-License-Identifier: Apache-2.0
#include "bench/volume/volume_bench.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace cairn::bench {

namespace {

struct Part {
  std::string_view name;
  Result<void> (*run)(const VolumeBenchOptions& options, Report& report);
};

constexpr std::array kParts = {
    Part{"cost", &bench_volume_cost},     Part{"speed", &bench_volume_speed},
    Part{"live", &bench_volume_live},     Part{"rebuild", &bench_volume_rebuild},
    Part{"growth", &bench_volume_growth}, Part{"share", &bench_volume_share},
    Part{"view", &bench_volume_view},
};

}  // namespace

const std::vector<std::string>& volume_parts() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Part& part : kParts) all.emplace_back(part.name);
    return all;
  }();
  return names;
}

Result<Report> bench_volume(const VolumeBenchOptions& options) {
  Report report("volume");
  for (const Part& part : kParts) {
    const bool is_wanted =
        options.only.empty() || std::ranges::find(options.only, part.name) != options.only.end();
    if (!is_wanted) continue;
    const Result<void> done = part.run(options, report);
    if (!done) return fail(done.error());
  }
  return report;
}

}  // namespace cairn::bench
