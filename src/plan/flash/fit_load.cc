// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/fit_load.h"

#include <algorithm>
#include <vector>

#include "model/flash/precondition.h"
#include "plan/common/latency_summary.h"

namespace cairn::plan {

namespace {

using flash::Completion;
using flash::FlashModel;
using flash::Nanos;
using flash::Op;
using flash::Parameters;
using flash::Synthetic;

// Work in pages per measured request, so that large requests take no longer than small ones.
constexpr uint64_t kPagesPerRequest = 4;
constexpr double kWarmUpMax = 60'000;
constexpr double kUsedWarmUpMax = 2'000'000;

struct Phases {
  uint64_t warm_up;
  uint64_t measured;
};

Phases phases(const FlashModel& model, const FioPoint& point, const FitLoad& load) {
  const Parameters& p = model.parameters();
  const uint64_t pages = std::max<uint64_t>(1, point.block_bytes / p.page_bytes);
  const uint64_t depth = point.depth;
  const uint64_t measured =
      std::max(8 * depth, std::min(load.requests, load.requests * kPagesPerRequest / pages));
  const uint64_t warm_up = std::max(2 * depth, measured / 4);
  if (!point.write) return {.warm_up = warm_up, .measured = measured};
  // Writes are fast until as much is on its way to flash as may be, and on a used drive until the
  // blocks that were kept free are full.
  const double planes = static_cast<double>(p.planes());
  const double bytes_per_write = point.block_bytes * (1 - std::min(point.read_fraction, 0.99));
  double bytes = 2 * planes * p.write_back_pages * p.page_bytes;
  double max = kWarmUpMax;
  if (load.occupancy > 0) {
    bytes += planes * model.gc_start_blocks() * p.pages_per_block * p.page_bytes;
    max = kUsedWarmUpMax;
  }
  const auto until_slow = static_cast<uint64_t>(std::min(bytes / bytes_per_write, max));
  return {.warm_up = std::max(warm_up, until_slow), .measured = measured};
}

class SideMeter {
 public:
  void add(Nanos latency) { latencies_.push_back(latency); }
  std::optional<LoadSide> side(double seconds) {
    if (latencies_.empty()) return std::nullopt;
    const LatencySummary summary = summarise(std::move(latencies_));
    return LoadSide{.iops = static_cast<double>(summary.count) / seconds,
                    .mean_ns = summary.mean,
                    .p99_ns = summary.p99};
  }

 private:
  std::vector<int64_t> latencies_;
};

Synthetic workload(const FlashModel& model, const FioPoint& point, const FitLoad& load) {
  const uint64_t sectors = model.domains()[0].logical_sectors;
  Synthetic s;
  s.pattern = point.pattern;
  s.read_fraction = point.read_fraction;
  s.sectors = static_cast<uint32_t>(
      std::min<uint64_t>(point.block_bytes / flash::kSectorBytes, sectors / 2));
  s.alignment_sectors = s.sectors;
  const double part = point.size_bytes == 0
                          ? point.size_part
                          : static_cast<double>(point.size_bytes) /
                                (static_cast<double>(sectors) * flash::kSectorBytes);
  // A working set holds at least a few requests.
  const double min = std::min(1.0, 4.0 * s.sectors / static_cast<double>(sectors));
  s.working_set = std::clamp(part, min, 1.0);
  s.queue_depth = point.depth;
  s.seed = load.seed;
  return s;
}

}  // namespace

std::optional<Prediction> predict(const Parameters& parameters, const FioPoint& point,
                                  const FitLoad& load) {
  FlashModel model(parameters);
  Synthetic s = workload(model, point, load);
  const Phases count = phases(model, point, load);
  s.requests = count.warm_up + count.measured + point.depth;
  if (load.occupancy > 0) {
    if (!flash::precondition(model, s, load.occupancy)) return std::nullopt;
  } else {
    flash::warm_mapping_for(model, s);
  }
  SideMeter reads;
  SideMeter writes;
  uint64_t completions = 0;
  Nanos start = 0;
  Nanos end = 0;
  flash::run_synthetic(model, s, [&](const Completion& c) {
    ++completions;
    if (completions == count.warm_up) start = c.done;
    if (completions <= count.warm_up || completions > count.warm_up + count.measured) return;
    end = c.done;
    (c.op == Op::kRead ? reads : writes).add(c.done - c.arrival);
  });
  const double seconds = std::max(static_cast<double>(end - start) * 1e-9, 1e-9);
  return Prediction{.read = reads.side(seconds), .write = writes.side(seconds)};
}

}  // namespace cairn::plan
