// SPDX-License-Identifier: Apache-2.0
#include "config/settings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cairn::config {
namespace {

using Cores = std::vector<int>;

TEST(ParseCores, TakesNumbersAndRangesInOrder) {
  EXPECT_EQ(*parse_cores("0"), (Cores{0}));
  EXPECT_EQ(*parse_cores("3,1"), (Cores{3, 1}));
  EXPECT_EQ(*parse_cores("2-4,0"), (Cores{2, 3, 4, 0}));
  EXPECT_EQ(parse_cores("0-1023")->size(), 1024U);
}

TEST(ParseCores, RefusesEverythingElseInASentence) {
  for (const char* text : {"", ",", "0,", ",0", "a", "0;1", "-1", "1-", "3-2", "1024", "0x1", " 0",
                           "99999999999999999999", "0-1-2", "1--2", "0,,1"}) {
    const Attempt<Cores> cores = parse_cores(text);
    ASSERT_FALSE(cores) << text;
    EXPECT_NE(cores.error().text.find("0,1"), std::string::npos) << cores.error().text;
  }
  EXPECT_NE(parse_cores("1,0-2").error().text.find("CPU 1 twice"), std::string::npos);
}

TEST(Choices, NamesParseBack) {
  for (IoChoice io : {IoChoice::kAuto, IoChoice::kUring, IoChoice::kEpoll}) {
    EXPECT_EQ(*parse_io(name(io)), io);
  }
  for (LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    EXPECT_EQ(*parse_log_level(name(level)), level);
  }
  EXPECT_EQ(parse_io("uing").error().text,
            "'uing' is not one of auto, uring, epoll; did you mean 'uring'?");
}

TEST(Resolve, TheCommandLineWinsOverDefaults) {
  const Attempt<Settings> settings =
      resolve({.io = IoChoice::kEpoll, .cores = Cores{1}, .poll = true});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->io, IoChoice::kEpoll);
  EXPECT_EQ(world_options(*settings).cpus, (Cores{1}));
  EXPECT_TRUE(world_options(*settings).poll);
}

TEST(Resolve, WithoutCoresThereIsOneUnpinned) {
  EXPECT_EQ(world_options(*resolve({})).cpus, (Cores{-1}));
}

TEST(Resolve, AMissingFileIsASentence) {
  const Attempt<Settings> settings = resolve({.config = "/nowhere/cairn.toml"});
  ASSERT_FALSE(settings);
  EXPECT_TRUE(settings.error().text.starts_with("there is no file '/nowhere/cairn.toml': "));
}

}  // namespace
}  // namespace cairn::config
