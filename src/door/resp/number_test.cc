// SPDX-License-Identifier: Apache-2.0
#include "door/resp/number.h"

#include <gtest/gtest.h>

#include <string>

#include "door/resp/glob.h"

namespace cairn::door::resp {
namespace {

TEST(Number, AnIntegerIsWrittenInOneWay) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("-17"), -17);
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
  for (const char* text : {"", "-", "+1", " 1", "1 ", "01", "-0", "-01", "1.0", "0x1",
                           "9223372036854775808", "-9223372036854775809", "1e3"}) {
    EXPECT_FALSE(parse_integer(text).has_value()) << text;
  }
}

TEST(Number, ARealHasNoZeroesAtItsEnd) {
  EXPECT_EQ(format_real(parse_real("10.50").value()), "10.5");
  EXPECT_EQ(format_real(parse_real("5.0e3").value()), "5000");
  EXPECT_EQ(format_real(parse_real("-0").value()), "0");
  EXPECT_EQ(format_real(parse_real("-inf").value()), "-inf");
  for (const char* text : {"", " 1", "1 ", "nan", "x", "1e5000", "1.2.3"}) {
    EXPECT_FALSE(parse_real(text).has_value()) << text;
  }
  EXPECT_FALSE(parse_real(std::string(6000, '1')).has_value());
  EXPECT_TRUE(parse_real(format_real(parse_real("1e4900").value())).has_value());
}

TEST(Glob, MatchesAsRedisDoes) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c", "axxbyyc"));
  EXPECT_FALSE(matches("a*b*c", "axxbyycd"));
  EXPECT_TRUE(matches("h?llo", "hello"));
  EXPECT_TRUE(matches("h[ae]llo", "hallo"));
  EXPECT_FALSE(matches("h[^ae]llo", "hallo"));
  EXPECT_TRUE(matches("h[a-c]llo", "hbllo"));
  EXPECT_TRUE(matches("h[c-a]llo", "hbllo"));
  EXPECT_TRUE(matches("a\\*b", "a*b"));
  EXPECT_FALSE(matches("a\\*b", "axb"));
  EXPECT_TRUE(matches("[abc", "b"));
  EXPECT_FALSE(matches("ABC", "abc"));
  EXPECT_TRUE(matches("ABC", "abc", true));
  EXPECT_FALSE(matches("", "a"));
}

TEST(Glob, TakesNoLongerForManyStars) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "a*";
  EXPECT_FALSE(matches(pattern + "b", std::string(5000, 'a')));
}

}  // namespace
}  // namespace cairn::door::resp
