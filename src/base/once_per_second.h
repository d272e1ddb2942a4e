// SPDX-License-Identifier: Apache-2.0
// OncePerSecond: a line of the log that strangers can cause as often as they like.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/units.h"

namespace cairn {

class OncePerSecond {
 public:
  // None: be silent. Else how the line ends: with how many were not said since the last.
  std::optional<std::string> take(Time now) {
    if (now < quiet_until_) {
      ++unsaid_;
      return std::nullopt;
    }
    quiet_until_ = now + 1_s;
    const uint64_t unsaid = std::exchange(unsaid_, 0);
    return unsaid > 0 ? fmt::format(" (and {} more before)", unsaid) : "";
  }

 private:
  Time quiet_until_;
  uint64_t unsaid_ = 0;
};

}  // namespace cairn
