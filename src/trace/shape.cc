// SPDX-License-Identifier: Apache-2.0
#include "trace/shape.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::trace {

Shaper::Shaper(const ShapeOptions& options) : options_(options) {
  CHECK(
      options.time_scale > 0 && options.targets > 0 && options.initiators > 0 && options.stripe > 0,
      "the options were checked");
  for (std::vector<uint64_t>& sent : sent_) sent.resize(options.initiators);
}

Record Shaper::shape(Record record) {
  const double scaled = static_cast<double>(record.arrival) * options_.time_scale;
  if (options_.time_scale != 1) {
    record.arrival = static_cast<Nanos>(std::min(scaled, static_cast<double>(kArrivalMax)));
  }
  place(record);
  record.initiator =
      record.initiator == kUnknown ? choose(record) : record.initiator % options_.initiators;
  return record;
}

void Shaper::place(Record& record) const {
  if (record.target != kUnknown) {
    record.target %= options_.targets;
  } else if (options_.placement == Placement::kByVolume) {
    record.target = record.volume % options_.targets;
  } else {
    // A request that crosses into the next stripe stays with the target of its first byte.
    const uint64_t stripe = record.offset / options_.stripe;
    record.target = static_cast<uint32_t>((stripe + record.volume) % options_.targets);
    record.offset = stripe / options_.targets * options_.stripe + record.offset % options_.stripe;
  }
  if (options_.space == 0) return;
  record.bytes = static_cast<uint32_t>(std::min<uint64_t>(record.bytes, options_.space));
  record.offset %= options_.space;
  if (record.offset > options_.space - record.bytes) {
    record.offset = (options_.space - record.bytes) / kSectorBytes * kSectorBytes;
  }
}

uint32_t Shaper::choose(const Record& record) {
  switch (options_.choice) {
    case Choice::kByVolume:
      return record.volume % options_.initiators;
    case Choice::kRoundRobin:
      return turn_++ % options_.initiators;
    case Choice::kLeastLoaded:
      break;
  }
  std::vector<uint64_t>& sent = sent_[record.write ? 1 : 0];
  const auto min = std::ranges::min_element(sent);
  *min += record.bytes;
  return static_cast<uint32_t>(min - sent.begin());
}

}  // namespace cairn::trace
