// SPDX-License-Identifier: Apache-2.0
// OncePerReason: lines of the log that strangers can cause as often as they like, each for a
// reason.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/once_per_second.h"
#include "base/units.h"

namespace cairn {

// One line a second for each reason: many who are refused for one do not hide who was for another.
class OncePerReason {
 public:
  static constexpr size_t kReasonsMax = 64;  // beyond them reasons share one line

  // None: be silent. Else how the line ends: with how many were not said since the last.
  std::optional<std::string> take(std::string_view reason, Time now) {
    const auto found = lines_.find(reason);
    if (found != lines_.end()) return found->second.take(now);
    if (lines_.size() >= kReasonsMax) return others_.take(now);
    return lines_.emplace(reason, OncePerSecond()).first->second.take(now);
  }

 private:
  std::map<std::string, OncePerSecond, std::less<>> lines_;
  OncePerSecond others_;
};

}  // namespace cairn
