// SPDX-License-Identifier: Apache-2.0
#include "drive/source.h"

#include <gtest/gtest.h>

#include <string>

#include "drive/ranges.h"
#include "task/task.h"
#include "testing/test_core.h"

namespace cairn::drive {
namespace {

TEST(DriveSpec, ReadsWhatItPrints) {
  for (const char* text : {"mem:size=1073741824,block=4096", "file:/a/b,size=8192,block=512",
                           "file:x,block=4096,direct=off", "flash:profile=qlc,size=4096,block=4096",
                           "flash:profile=qlc,file=/a/b,size=4096,block=512,direct=off"}) {
    const auto spec = Spec::parse(text);
    ASSERT_TRUE(spec) << spec.error();
    EXPECT_EQ(spec->text(), text);
  }
  EXPECT_EQ(Spec::parse("mem:size=1G")->size, 1_GiB);
  EXPECT_EQ(Spec::parse("file:/d,size=8GiB,block=512")->block_size, 512u);
}

TEST(DriveSpec, SaysWhatIsWrongAndWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "is no drive"},
      {"nvme0n1", "is no drive"},
      {"mem:", "is not KEY=VALUE"},
      {"mem:size", "is not KEY=VALUE"},
      {"mem:size=", "is not a number of bytes"},
      {"mem:size=0", "is not a number of bytes"},
      {"mem:size=1X", "is not a number of bytes"},
      {"mem:size=99999999999T", "is not a number of bytes"},
      {"mem:size=1G,block=1000", "power of two"},
      {"mem:size=5000", "not a multiple"},
      {"mem:size=1G,direct=off", "is not an option"},
      {"file:", "names no file"},
      {"file:/x,colour=red", "'colour' is not an option"},
      {"file:/x,", "is not KEY=VALUE"},
      {"mem:block=512", "has no size"},
      {"mem:size=1G,profile=qlc", "'profile' is not an option"},
      {"flash:profile=qlc", "has no size"},
      {"flash:size=1G", "has no profile"},
      {"flash:profile=,size=1G", "profile names nothing"},
      {"flash:profile=qlc,size=1G,direct=off", "has direct and no file"},
  };
  for (const auto& [text, message] : cases) {
    const auto spec = Spec::parse(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_NE(spec.error().find(message), std::string::npos) << text << ": " << spec.error();
  }
}

task::Task<Result<void>> enter(Ranges::Hold& hold) {
  Result<void> held = co_await hold;
  co_return held;
}

TEST(Ranges, SharedOverlapFreely) {
  task::TestCore core;
  Ranges ranges;
  Ranges::Hold a(ranges, Ranges::Mode::kShared, 0, 10);
  Ranges::Hold b(ranges, Ranges::Mode::kShared, 5, 10);
  EXPECT_TRUE(enter(a).take());
  EXPECT_TRUE(enter(b).take());
}

TEST(Ranges, ExclusiveWaitsForOverlapAndHoldsLaterOnesBack) {
  task::TestCore core;
  Ranges ranges;
  Ranges::Hold writer(ranges, Ranges::Mode::kShared, 0, 10);
  Ranges::Hold alone(ranges, Ranges::Mode::kExclusive, 5, 1);
  Ranges::Hold late(ranges, Ranges::Mode::kShared, 5, 1);
  Ranges::Hold elsewhere(ranges, Ranges::Mode::kShared, 100, 1);
  EXPECT_TRUE(enter(writer).take());
  auto exclusive = enter(alone);
  auto behind = enter(late);
  EXPECT_TRUE(enter(elsewhere).take());
  core.run();
  EXPECT_FALSE(exclusive.is_done());
  writer.leave();
  core.run();
  EXPECT_TRUE(exclusive.is_done());
  EXPECT_FALSE(behind.is_done());
  alone.leave();
  core.run();
  EXPECT_TRUE(behind.take());
}

TEST(Ranges, CancelledWaiterLetsOthersThrough) {
  task::TestCore core;
  Ranges ranges;
  task::CancelSource stop;
  Ranges::Hold writer(ranges, Ranges::Mode::kShared, 0, 10);
  Ranges::Hold alone(ranges, Ranges::Mode::kExclusive, 5, 1, stop.token());
  Ranges::Hold late(ranges, Ranges::Mode::kShared, 5, 1);
  EXPECT_TRUE(enter(writer).take());
  auto exclusive = enter(alone);
  auto behind = enter(late);
  stop.request();
  core.run();
  EXPECT_TRUE(exclusive.take().error() == Errc::kCancelled);
  EXPECT_TRUE(behind.take());
}

}  // namespace
}  // namespace cairn::drive
