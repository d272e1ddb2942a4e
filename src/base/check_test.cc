// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace cairn {
namespace {

TEST(CheckDeathTest, NamesFileConditionAndReason) {
  EXPECT_DEATH(CHECK(1 + 1 == 3, "arithmetic holds"), "check_test.cc.*1 \\+ 1 == 3: arithmetic");
}

TEST(CheckDeathTest, HookSpeaksBeforeTheEnd) {
  auto last_words = [](void* context) { std::fputs(static_cast<const char*>(context), stderr); };
  EXPECT_DEATH(
      {
        char words[] = "seed 42";
        set_check_hook({last_words, words});
        CHECK(false);
      },
      "seed 42");
}

TEST(Check, PassingConditionIsSilent) { CHECK(true, "of course"); }

}  // namespace
}  // namespace cairn
