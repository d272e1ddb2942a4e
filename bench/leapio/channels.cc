// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/channels.h"

#include <algorithm>
#include <tuple>

#include "base/rng.h"
#include "base/units.h"
#include "model/flash/precondition.h"
#include "model/flash/scale.h"
#include "model/flash/workload.h"

namespace cairn::bench::leapio {

namespace {

using flash::Nanos;
using flash::Op;
using flash::TimedRequest;

// A plane that two share needs spare blocks for both: a smaller drive would not have them.
constexpr uint64_t kTenantSpace = 64_GiB;
constexpr double kReadGapNs = 50'000;
constexpr uint32_t kReadSectors = 4_KiB / flash::kSectorBytes;
// About a third of what half the drive can write.
constexpr double kWriteGapNs = 80'000;
constexpr uint32_t kWriteSectors = 64_KiB / flash::kSectorBytes;
constexpr double kOccupancy = 0.5;

// Two streams, on all channels or on one half each.
flash::Parameters for_two(const flash::Parameters& drive, bool apart) {
  flash::Parameters two = flash::scaled_to(drive, 2 * kTenantSpace).value_or(drive);
  flash::StreamParameters first = two.streams.front();
  flash::StreamParameters second = first;
  if (apart) {
    for (uint32_t i = 0; i < two.channels; ++i) {
      (i < two.channels / 2 ? first : second).channels.push_back(i);
    }
  }
  two.streams = {first, second};
  return two;
}

struct Arrivals {
  Op op = Op::kRead;
  uint32_t stream = 0;
  uint32_t sectors = 0;
  double gap_ns = 0;
  Nanos until = 0;
};

void add(const Arrivals& arrivals, uint64_t seed, std::vector<TimedRequest>& to) {
  Rng rng(seed);
  const uint64_t places = kTenantSpace / flash::kSectorBytes / arrivals.sectors / 2;
  for (double at = rng.exponential(arrivals.gap_ns); at < static_cast<double>(arrivals.until);
       at += rng.exponential(arrivals.gap_ns)) {
    to.push_back({static_cast<Nanos>(at),
                  {.op = arrivals.op,
                   .stream = arrivals.stream,
                   .lba = rng.below(places) * arrivals.sectors,
                   .sectors = arrivals.sectors,
                   .cookie = to.size()}});
  }
}

}  // namespace

Result<std::vector<double>> read_latencies_us(const flash::Parameters& drive,
                                              const Tenancy& tenancy, uint64_t requests,
                                              uint64_t seed) {
  const flash::Parameters two = for_two(drive, tenancy.apart);
  if (flash::check(two)) return fail(Errc::kInvalid, "a modelled drive too small for two tenants");
  flash::FlashModel model(two);
  for (uint32_t stream = 0; stream < 2; ++stream) {
    const bool fits =
        flash::precondition(model, {.read_fraction = 0, .stream = stream}, kOccupancy);
    if (!fits) return fail(Errc::kInvalid, "a modelled drive too small for two tenants");
  }
  const auto until = static_cast<Nanos>(kReadGapNs * static_cast<double>(requests));
  std::vector<TimedRequest> all;
  add({.stream = 0, .sectors = kReadSectors, .gap_ns = kReadGapNs, .until = until}, seed, all);
  if (tenancy.neighbour) {
    add({.op = Op::kWrite,
         .stream = 1,
         .sectors = kWriteSectors,
         .gap_ns = kWriteGapNs,
         .until = until},
        seed + 1, all);
  }
  std::ranges::sort(all, {}, [](const TimedRequest& each) {
    return std::tuple(each.arrival, each.request.stream, each.request.cookie);
  });
  std::vector<double> latencies;
  flash::run_open_loop(model, all, [&latencies](const flash::Completion& done) {
    if (done.stream == 0) {
      latencies.push_back(static_cast<double>(done.done - done.arrival) * 1e-3);
    }
  });
  return latencies;
}

}  // namespace cairn::bench::leapio
