// SPDX-License-Identifier: Apache-2.0
#include "world/sim/trace_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "base/units.h"
#include "world/sim/event_queue.h"

namespace cairn::sim {
namespace {

const Origin kNodeZero{.node = 0, .core = 1};
const Origin kNodeOne{.node = 1};
const EventKind kKind("test.event", [](Event&) {});

uint64_t hash_after(const std::function<void(TraceLog&)>& happen) {
  TraceLog log(4);
  happen(log);
  return log.hash();
}

TEST(TraceLog, AnyDifferenceChangesTheHash) {
  const auto event = [](TraceLog& log, const Origin& origin, int64_t when, uint64_t sequence) {
    Event it(kKind, origin);
    log.event({Time{when}, sequence, &it});
  };
  std::set<uint64_t> hashes;
  hashes.insert(hash_after([](TraceLog&) {}));
  hashes.insert(hash_after([&](TraceLog& log) { event(log, kNodeZero, 5, 1); }));
  hashes.insert(hash_after([&](TraceLog& log) { event(log, kNodeOne, 5, 1); }));
  hashes.insert(hash_after([&](TraceLog& log) { event(log, kNodeZero, 6, 1); }));
  hashes.insert(hash_after([&](TraceLog& log) { event(log, kNodeZero, 5, 2); }));
  hashes.insert(hash_after([](TraceLog& log) { log.record(Time{5}, kNodeZero, "x", 1, 2); }));
  hashes.insert(hash_after([](TraceLog& log) { log.record(Time{5}, kNodeZero, "y", 1, 2); }));
  hashes.insert(hash_after([](TraceLog& log) { log.record(Time{5}, kNodeZero, "x", 2, 1); }));
  hashes.insert(hash_after([](TraceLog& log) { log.record(Time{5}, kNodeZero, "x", 1, 3); }));
  EXPECT_EQ(hashes.size(), 9u);
  EXPECT_EQ(hash_after([](TraceLog& log) { log.record(Time{5}, kNodeZero, "x", 1, 2); }),
            hash_after([](TraceLog& log) {
              const std::string same_text = "x";
              log.record(Time{5}, kNodeZero, same_text.c_str(), 1, 2);
            }));
}

TEST(TraceLog, KeepsTheLastEntriesWithNodeAndCore) {
  TraceLog log(3);
  log.add_node("a");
  log.add_node("b");
  for (uint64_t i = 1; i <= 5; ++i) {
    log.record(Time{static_cast<int64_t>(i)}, i == 5 ? kNodeOne : kNodeZero, "step", i, 0);
  }
  const std::string tail = log.tail();
  EXPECT_EQ(std::ranges::count(tail, '\n'), 3);
  EXPECT_EQ(tail.find("step 2"), std::string::npos);
  EXPECT_LT(tail.find("a/1        step 3 0"), tail.find("b/0        step 5 0"));
  EXPECT_NE(tail.find("0.000000004 s"), std::string::npos);
}

}  // namespace
}  // namespace cairn::sim
