// SPDX-License-Identifier: Apache-2.0
// Shape: fits the requests of a trace to a system: its speed, address space, targets, initiators.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/record.h"

namespace cairn::trace {

// Which target serves a request that does not say so.
enum class Placement : uint8_t { kByVolume, kStriped };
// Who sends a request that does not say so.
enum class Choice : uint8_t { kLeastLoaded, kByVolume, kRoundRobin };

struct ShapeOptions {
  double time_scale = 1;  // 2: everything takes twice as long
  uint64_t space = 0;     // bytes of each target that are used, larger offsets wrap; 0: as they are
  uint32_t targets = 1;
  uint32_t initiators = 10;
  Placement placement = Placement::kByVolume;
  uint64_t stripe = 1UL << 20;  // bytes, of kStriped
  Choice choice = Choice::kLeastLoaded;
};

class Shaper {
 public:
  // Scale, targets, initiators and stripe are above zero.
  explicit Shaper(const ShapeOptions& options);

  // Initiator and target are known afterwards; numbers that a trace gives wrap to those there are.
  Record shape(Record record);

 private:
  void place(Record& record) const;
  uint32_t choose(const Record& record);

  ShapeOptions options_;
  std::vector<uint64_t> sent_[2];  // bytes by initiator, of reads and of writes
  uint32_t turn_ = 0;
};

}  // namespace cairn::trace
