// SPDX-License-Identifier: Apache-2.0
#include "server/serve/vfio_door.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace cairn::server {
namespace {

using door::vfio_user::Pace;

VfioArgs args(std::string_view text) {
  Attempt<VfioArgs> parsed = parse_vfio_args(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed.value_or(VfioArgs{});
}

TEST(VfioArgs, NameASocketAndPerhapsADriveAndAMode) {
  EXPECT_EQ(args("/run/vm.sock").socket, "/run/vm.sock");
  EXPECT_EQ(args("/run/vm.sock").drive, "");
  EXPECT_EQ(args("/run/vm.sock").pace, Pace::kAdaptive);
  EXPECT_EQ(args("unix:/run/a=b.sock").socket, "/run/a=b.sock");
  EXPECT_EQ(args("d0=/run/vm.sock").drive, "d0");
  EXPECT_EQ(args("d0=unix:/run/vm.sock,mode=polling").socket, "/run/vm.sock");
  EXPECT_EQ(args("d0=/run/vm.sock,mode=polling").pace, Pace::kPolling);
  EXPECT_EQ(args("/run/vm.sock,mode=interrupt").pace, Pace::kInterrupt);
  EXPECT_EQ(args("vm.sock").socket, (std::filesystem::current_path() / "vm.sock").string());
}

TEST(VfioArgs, AFolderHasTheSocketWhereSpdkLooks) { EXPECT_EQ(args("/").socket, "/cntrl"); }

TEST(VfioArgs, MistakesSayWhatToWrite) {
  const Attempt<VfioArgs> mode = parse_vfio_args("/run/vm.sock,mode=fast");
  ASSERT_FALSE(mode.has_value());
  EXPECT_NE(mode.error().text.find("polling, adaptive or interrupt"), std::string::npos);
  EXPECT_FALSE(parse_vfio_args("").has_value());
  EXPECT_FALSE(parse_vfio_args("d0=").has_value());
}

TEST(VfioControllers, HaveAllDrivesOrOneEach) {
  const std::vector<std::string> drives = {"d0", "d1"};
  const Attempt<std::vector<VfioController>> planned = plan_controllers(
      {args("/run/all"), args("d1=/run/one"), args("/run/%.sock,mode=polling")}, drives, "nqn");
  ASSERT_TRUE(planned.has_value());
  ASSERT_EQ(planned->size(), 4u);
  EXPECT_EQ((*planned)[0].drives, drives);
  EXPECT_EQ((*planned)[0].nqn, "nqn");
  EXPECT_EQ((*planned)[1].drives, std::vector<std::string>{"d1"});
  EXPECT_EQ((*planned)[1].nqn, "nqn:d1");
  EXPECT_EQ((*planned)[2].socket, "/run/d0.sock");
  EXPECT_EQ((*planned)[3].socket, "/run/d1.sock");
  EXPECT_EQ((*planned)[3].pace, Pace::kPolling);
}

TEST(VfioControllers, UnknownDrivesAndSocketsThatComeTwiceAreRefused) {
  const std::vector<std::string> drives = {"data", "boot"};
  const Attempt<std::vector<VfioController>> unknown =
      plan_controllers({args("dat=/run/a")}, drives, "nqn");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().text.find("data"), std::string::npos);
  const Attempt<std::vector<VfioController>> twice =
      plan_controllers({args("data=/run/a"), args("boot=/run/a")}, drives, "nqn");
  ASSERT_FALSE(twice.has_value());
  EXPECT_NE(twice.error().text.find("/run/a"), std::string::npos);
}

}  // namespace
}  // namespace cairn::server
