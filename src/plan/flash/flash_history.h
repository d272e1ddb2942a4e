// SPDX-License-Identifier: Apache-2.0
// What a modelled drive did over time: its counters at a few hundred moments of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "model/flash/model.h"

namespace cairn::plan {

// Totals since the drive was made, except bytes: those since the history began.
struct FlashSample {
  flash::Nanos at = 0;
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
  flash::Nanos channels_busy = 0;  // of all channels together
  flash::Nanos dies_busy = 0;
  uint64_t user_pages = 0;  // programmed
  uint64_t collector_pages = 0;
  uint64_t mapping_pages = 0;
  uint64_t blocks_erased = 0;
};

// Does not know how long the run will be: it takes samples often at first, and forgets every other
// one and takes half as many from then on whenever it has kSamplesMax.
class FlashHistory {
 public:
  static constexpr size_t kSamplesMax = 256;

  // From the model's present on. The model outlives the history.
  explicit FlashHistory(const flash::FlashModel& model);
  void completed(const flash::Completion& completion);
  // After the last event.
  void end();

  // In order of time, no two at the same.
  const std::vector<FlashSample>& samples() const { return samples_; }

 private:
  void take();

  const flash::FlashModel& model_;
  std::vector<FlashSample> samples_;
  flash::Nanos interval_ = 1000;
  flash::Nanos next_ = 0;
  uint64_t read_bytes_ = 0;
  uint64_t written_bytes_ = 0;
};

}  // namespace cairn::plan
