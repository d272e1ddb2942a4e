// SPDX-License-Identifier: Apache-2.0
#include "world/sim/trace_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/units.h"
#include "world/sim/event_queue.h"

namespace cairn::sim {

TraceLog::TraceLog(size_t capacity) : entries_(std::max<size_t>(capacity, 1)) {}

void TraceLog::record(Time at, const Origin& origin, const char* what, uint64_t a, uint64_t b) {
  absorb(hash_text(what) ^ origin.node, static_cast<uint64_t>(at.ns));
  absorb(a, b);
  keep({at, what, a, b, origin.node, origin.core, true});
}

std::string TraceLog::tail() const {
  std::string text;
  const size_t count = std::min<uint64_t>(total_, entries_.size());
  for (size_t i = 0; i < count; ++i) {
    const Entry& entry = entries_[(next_ + entries_.size() - count + i) % entries_.size()];
    const std::string node =
        entry.node < nodes_.size() ? fmt::format("{}/{}", nodes_[entry.node], entry.core) : "-";
    text += fmt::format("{:>18.9f} s  {:<10} ", Duration{entry.at.ns}.seconds(), node);
    text += entry.is_record ? fmt::format("{} {} {}\n", entry.what, entry.a, entry.b)
                            : fmt::format("({} #{})\n", entry.what, entry.a);
  }
  return text;
}

}  // namespace cairn::sim
