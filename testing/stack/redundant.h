// SPDX-License-Identifier: Apache-2.0
// Opening services with several legs again and again, over disks that stay.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "task/deadline.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {

// Whether legs still get what they lack, or spares wait to take the place of lost ones.
inline bool is_busy(const Drive& drive) {
  const std::vector<Fact> facts = drive.facts();
  const auto has = [&facts](std::string_view name) {
    const auto at = std::ranges::find(facts, name, &Fact::name);
    return at != facts.end() && at->value > 0;
  };
  return has("regions_to_copy") || has("legs_copying") || (has("legs_lost") && has("spares"));
}

inline task::Task<void> until_settled(env::Env& env, const Drive& drive) {
  while (is_busy(drive)) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept);
  }
}

// Opens a stack, waits until its legs are as good as they get, writes a block of `value` at 0 if
// not 0, and closes it. Why it did not open, else empty.
inline task::Task<void> use(env::Env& env, std::string text, uint8_t value, std::string& why) {
  SourceLeaves leaves;
  Opened drive = co_await open_stack(env, text, leaves);
  why = drive ? "" : drive.error().text;
  if (!drive) co_return;
  co_await until_settled(env, **drive);
  if (value != 0) co_await write_value(**drive, 0, value);
  co_await (*drive)->close();
}

// Machines are the legs' home: a stack on the same cluster again finds the same disks.
class RedundantTest : public testing::Test {
 protected:
  std::string use_stack(std::string text, uint8_t value = 0) {
    std::string why;
    run_in_sim(cluster_, [&](env::Env& env) { return use(env, text, value, why); });
    return why;
  }
  sim::Medium& disk(const std::string& path) { return cluster_.node("host").disk(path); }
  std::vector<std::byte> contents(const std::string& path) { return contents_of(disk(path)); }
  static bool says(const std::string& why, const char* part) {
    EXPECT_NE(why.find(part), std::string::npos) << why;
    return why.find(part) != std::string::npos;
  }

  sim::Cluster cluster_;
};

}  // namespace cairn::drive
