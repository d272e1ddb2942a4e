// SPDX-License-Identifier: Apache-2.0
// What a host does with a modelled drive: replay a trace, or keep a queue full.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "model/flash/model.h"
#include "model/flash/mrg32k3a.h"

namespace cairn::flash {

struct TimedRequest {
  Nanos arrival = 0;
  HostRequest request;
};

// Told of each completion of a run.
using OnCompletion = std::function<void(const Completion&)>;

// The next request of a run, none of them before the last; nothing at the end.
using NextRequest = std::function<std::optional<TimedRequest>()>;

// Submits each request at its arrival, in order, and runs until the drive is idle.
void run_open_loop(FlashModel& model, const NextRequest& next, const OnCompletion& on_completion);
void run_open_loop(FlashModel& model, std::span<const TimedRequest> requests,
                   const OnCompletion& on_completion);

enum class Pattern : uint8_t { kRandom, kSequential };

// Fixed-size requests over the first part of a stream's space, drawn as the reference draws them.
struct Synthetic {
  Pattern pattern = Pattern::kRandom;
  double read_fraction = 1.0;
  uint32_t sectors = 8;
  uint32_t alignment_sectors = 8;
  double working_set = 1.0;  // part of the space
  uint64_t requests = 20'000;
  uint32_t queue_depth = 1;
  // Above zero: requests come at exponentially distributed times with this mean instead.
  double mean_gap_ns = 0;
  uint32_t seed = 798;
  uint32_t stream = 0;
};

class SyntheticSource {
 public:
  // `sectors` is the size of the stream's space.
  SyntheticSource(const Synthetic& synthetic, uint64_t sectors);

  bool exhausted() const { return generated_ >= synthetic_.requests; }
  HostRequest next();
  uint64_t last_sector() const { return last_; }

 private:
  Synthetic synthetic_;
  uint64_t last_;
  Mrg32k3a types_;
  Mrg32k3a addresses_;
  uint64_t next_lba_ = 0;
  uint64_t generated_ = 0;
};

void run_synthetic(FlashModel& model, const Synthetic& synthetic,
                   const OnCompletion& on_completion);

}  // namespace cairn::flash
