// SPDX-License-Identifier: Apache-2.0
#include "drive/file_drive.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "drive/source.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"
#include "world/sim/cluster.h"

namespace cairn::drive {
namespace {

// A size says how large a file is at least.
SIM_TEST(FileDrive, OpensWithTheSizeItHasWhenItsLineSaysLess) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "file:d,size=2M", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const Result<void> grown = co_await drive->resize(4_MiB / 4096);
  EXPECT_TRUE(grown);
  co_await write_value(*drive, 4_MiB / 4096 - 1, 6);
  co_await drive->close();
  drive = nullptr;
  leaves.close();
  for (const char* text : {"file:d,size=2M", "file:d,size=4M", "file:d"}) {
    drive = co_await must_open(env, text, leaves);
    CO_ASSERT_TRUE(drive != nullptr);
    EXPECT_EQ(drive->geometry().bytes(), 4_MiB) << text;
    EXPECT_EQ(co_await read_value(*drive, 4_MiB / 4096 - 1), 6) << text;
    co_await drive->close();
    drive = nullptr;
    leaves.close();
  }
  const std::string why = co_await why_not(env, "file:d,size=8M", leaves);
  EXPECT_NE(why.find("another size"), std::string::npos) << why;
}

// What asks for a change of size, and cannot make it durable, keeps the old one.
task::Task<void> fail_to_flush(env::Env& env, sim::Medium& disk) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "file:d,size=2M", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  disk.fail_flushes();
  const Result<void> grown = co_await drive->resize(4_MiB / 4096);
  EXPECT_FALSE(grown);
  EXPECT_EQ(drive->geometry().bytes(), 2_MiB);
  EXPECT_EQ(disk.size(), 2_MiB);
  disk.heal();
  const Result<void> again = co_await drive->resize(4_MiB / 4096);
  EXPECT_TRUE(again);
  co_await drive->close();
}

TEST(FileDrive, IsResizedDurablyOrNotAtAll) {
  sim::Cluster cluster;
  sim::Medium& disk = cluster.node("host").disk("d");
  run_in_sim(cluster, [&disk](env::Env& env) { return fail_to_flush(env, disk); });
}

}  // namespace
}  // namespace cairn::drive
