// SPDX-License-Identifier: Apache-2.0
// Volumes: what a trace calls its volumes, as small numbers in the order of their first request.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "base/rng.h"

namespace cairn::trace {

// Beyond kVolumesMax, volumes share numbers, so that a hostile trace cannot take all memory.
class Volumes {
 public:
  static constexpr uint32_t kVolumesMax = 1U << 20;

  // By number, and by name where both make the volume.
  uint32_t number(uint64_t id, std::string_view name = {}) {
    const uint64_t key = name.empty() ? id : mix64(id) ^ std::hash<std::string_view>{}(name);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    if (known_.size() >= kVolumesMax) return static_cast<uint32_t>(key % kVolumesMax);
    const auto next = static_cast<uint32_t>(known_.size());
    known_.emplace(key, next);
    return next;
  }

 private:
  std::unordered_map<uint64_t, uint32_t> known_;
};

}  // namespace cairn::trace
