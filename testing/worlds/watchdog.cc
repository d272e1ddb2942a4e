// SPDX-License-Identifier: Apache-2.0
#include "testing/worlds/watchdog.h"

#include <gtest/gtest.h>
#include <unistd.h>  // lint: allow(an alarm works when the world under test does not)

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <utility>

namespace cairn::conformance {

namespace {

// Made before the alarm is set, because a signal handler can only write what is there.
std::array<char, 256> message;
size_t message_size = 0;

void on_alarm(int) {
  (void)!::write(STDERR_FILENO, message.data(), message_size);  // lint: allow(signal handler)
  std::abort();
}

}  // namespace

Watchdog::Watchdog(std::string what, unsigned seconds) {
  what += " hung: nothing completed it for " + std::to_string(seconds) + " s\n";
  message_size = what.copy(message.data(), message.size());
  std::signal(SIGALRM, &on_alarm);
  ::alarm(seconds);
}

Watchdog::~Watchdog() {
  ::alarm(0);
  std::signal(SIGALRM, SIG_DFL);
}

std::string current_test() {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  return std::string(info->test_suite_name()) + "." + info->name();
}

}  // namespace cairn::conformance
