// SPDX-License-Identifier: Apache-2.0
// Watchdog: a test that hangs fails with a message instead of waiting for somebody to notice.
#pragma once

#include <string>

namespace cairn::conformance {

// While in scope: after `seconds` the program ends with "<what> hung". One at a time.
class Watchdog {
 public:
  // Far more than any test needs under a sanitizer on a busy machine, less than ctest's limit.
  static constexpr unsigned kSeconds = 100;

  explicit Watchdog(std::string what, unsigned seconds = kSeconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
};

// "Suite/world.Fact" of the running test.
std::string current_test();

}  // namespace cairn::conformance
