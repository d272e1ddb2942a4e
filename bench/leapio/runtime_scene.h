// SPDX-License-Identifier: Apache-2.0
// RuntimeScene: one point of Figures 6 and 10. Threads that read and write 4 KiB, each waiting for
// its own, on a modelled drive: alone, behind a runtime on the host, or behind one on a
// co-processor; beside it or in a box across the network.
#pragma once

#include <compare>
#include <cstdint>

#include "base/error.h"
#include "base/histogram.h"
#include "base/units.h"
#include "bench/leapio/runtime.h"
#include "bench/leapio/scene.h"

namespace cairn::bench::leapio {

// Where the runtime runs that serves the drive.
enum class Placement : uint8_t {
  kNone,         // the guest has the drive itself
  kHost,         // on a core of the host
  kCoprocessor,  // on a card: slower, and away from queues that lie in the host's memory
};

struct RuntimeScene {
  uint32_t threads = 1;
  double reads = 1;  // the part of the requests that are
  Placement runtime = Placement::kNone;
  bool remote = false;  // the drive is in a box, over NVMe/TCP, and the runtime there

  auto operator<=>(const RuntimeScene&) const = default;
};

// What a command costs a core of the host, measured: `cairn bench drive --only vfio`, the memory
// drive at depth 128; and in a box, `cairn bench fabric`, 4 KiB reads at depth 128.
inline constexpr Duration kRuntimeCost = 500_ns;
inline constexpr Duration kBoxCost = 1100_ns;
// As the paper states them of its card.
inline constexpr Duration kQueueAccess = 5_us;
inline constexpr double kCoprocessorSpeed = 0.75;

// A remote runtime has its drive's queues in its own memory, on a card too.
RuntimeCosts costs_of(const RuntimeScene& scene);

struct RuntimePlayed {
  double per_second = 0;
  Histogram latency_ns;
};

// Errors as play() of scene.h.
Result<RuntimePlayed> play(const RuntimeScene& scene, const Stage& stage);

}  // namespace cairn::bench::leapio
