// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/drive_bench.h"

#include <algorithm>
#include <array>

#include "bench/drive/checkpoint_pause.h"
#include "bench/drive/copies.h"
#include "bench/drive/guest_contest.h"
#include "bench/drive/move_blackout.h"
#include "bench/drive/nbd_contest.h"
#include "bench/drive/service_cost.h"
#include "bench/drive/vfio_contest.h"
#include "bench/drive/vhost_contest.h"

namespace cairn::bench {

namespace {

struct Part {
  const char* name;
  Result<void> (*run)(const DriveBenchOptions& options, Report& report);
};
constexpr std::array<Part, 9> kParts = {{
    {"services", bench_services},
    {"checkpoints", bench_checkpoints},
    {"nbd", bench_nbd},
    {"vfio", bench_vfio},
    {"vhost", bench_vhost},
    {"guest", bench_guest},
    {"copies", bench_copies},
    {"move", bench_move},
    {"idle", bench_idle_drives},
}};

}  // namespace

const std::vector<std::string>& drive_bench_parts() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Part& part : kParts) all.emplace_back(part.name);
    return all;
  }();
  return names;
}

bool DriveBenchOptions::wants(std::string_view part) const {
  return only.empty() || std::ranges::find(only, part) != only.end();
}

Result<Report> bench_drive(const DriveBenchOptions& options) {
  Report report("drive");
  for (const Part& part : kParts) {
    if (!options.wants(part.name)) continue;
    if (const Result<void> done = part.run(options, report); !done) return fail(done.error());
  }
  return report;
}

}  // namespace cairn::bench
