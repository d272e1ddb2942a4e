// SPDX-License-Identifier: Apache-2.0
#include "server/open/open.h"

#include <gtest/gtest.h>

#include <string>

#include "server/open/is_stack.h"

namespace cairn::server {
namespace {

TEST(DriveArgs, AStackIsAServiceOrAPlace) {
  for (const char* text : {"limit(mem:size=1M, iops=1)", " mirror(a, b", "nvme-tcp://h/nqn",
                           "\"file:/a b\"", "frob()"}) {
    EXPECT_TRUE(is_stack(text)) << text;
  }
  for (const char* text :
       {"mem:size=1M", "file:/a(b)", "disk0", "", "  ", "a=limit(mem:size=1M)"}) {
    EXPECT_FALSE(is_stack(text)) << text;
  }
}

TEST(DriveArgs, ANameStandsBeforeTheDrive) {
  const Attempt<DriveArgs> plain = parse_drive_args("mem:size=1M", LookUp::kNow);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->name, "");
  EXPECT_EQ(plain->stack, nullptr);
  EXPECT_EQ(plain->spec.size, 1u << 20);
  const Attempt<DriveArgs> stack =
      parse_drive_args("a.b=limit( mem:size=1M , iops=5)", LookUp::kNow);
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->name, "a.b");
  EXPECT_NE(stack->stack, nullptr);
  EXPECT_EQ(stack->text, "limit(mem:size=1048576,block=4096, iops=5)");
  const Attempt<DriveArgs> unnamed = parse_drive_args("limit(mem:size=1M, iops=5)", LookUp::kNow);
  ASSERT_TRUE(unnamed);
  EXPECT_EQ(unnamed->name, "");
}

TEST(DriveArgs, AStacksTextIsWholeAndReadsBack) {
  const auto plan = StackPlan::prepare(
      "mirror(file:d0,size=1M, nvme-tcp://127.0.0.1/nqn.2026-11.io.cairn:a, degraded=yes)");
  ASSERT_TRUE(plan) << plan.error().text;
  const std::string text = (*plan)->whole_text();
  EXPECT_NE(text.find("file:/"), std::string::npos) << text;
  EXPECT_NE(text.find("/d0,size=1048576"), std::string::npos) << text;
  const auto again = StackPlan::prepare(text);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->whole_text(), text);
  const std::string grown = (*plan)->grown_text();
  EXPECT_EQ(grown.find("size="), std::string::npos) << grown;
  EXPECT_TRUE(StackPlan::prepare(grown));
}

TEST(DriveArgs, ALegIsGivenUpSoonerThanADriveThatNobodyReplaces) {
  const std::string leaf = "nvme-tcp://127.0.0.1/nqn.2026-11.io.cairn:a";
  const auto timeout = [](const std::string& stack, const std::string& remote) {
    const auto plan = StackPlan::prepare(stack);
    EXPECT_TRUE(plan) << plan.error().text;
    return (*plan)->place_of(remote)->options.loss_timeout;
  };
  EXPECT_EQ(timeout("slice(" + leaf + ")", leaf), 30_s);
  EXPECT_EQ(timeout("mirror(file:d0, " + leaf + ")", leaf), 5_s);
  EXPECT_EQ(timeout("parity(file:d0, file:d1, slice(" + leaf + "))", leaf), 5_s);
  const std::string patient = leaf + "?loss_timeout=9s";
  EXPECT_EQ(timeout("mirror(file:d0, " + patient + ")", patient), 9_s);
}

}  // namespace
}  // namespace cairn::server
