// SPDX-License-Identifier: Apache-2.0
#include "base/percent.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Percent, EveryByteSurvives) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(percent_decode(percent_encode(all)), all);
  EXPECT_EQ(percent_encode("a b&c"), "a%20b%26c");
}

TEST(Percent, WhatIsCutShortIsNone) {
  for (const char* text : {"%", "a%4", "%zz", "%-1", "% 1"}) {
    EXPECT_EQ(percent_decode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace cairn
