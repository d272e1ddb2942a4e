// SPDX-License-Identifier: Apache-2.0
#include "base/words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cairn {
namespace {

const std::vector<std::string> kCommands = {"up", "doctor", "bench", "config", "version"};

TEST(Nearest, FindsATypingError) {
  EXPECT_EQ(nearest("doctro", kCommands), "doctor");
  EXPECT_EQ(nearest("dcotor", kCommands), "doctor");
  EXPECT_EQ(nearest("Doctor", kCommands), "doctor");
  EXPECT_EQ(nearest("benhc", kCommands), "bench");
  EXPECT_EQ(nearest("upp", kCommands), "up");
  EXPECT_EQ(nearest("versions", kCommands), "version");
}

TEST(Nearest, FindsNothingInAnotherWord) {
  EXPECT_EQ(nearest("format", kCommands), "");
  EXPECT_EQ(nearest("x", kCommands), "");
  EXPECT_EQ(nearest("", kCommands), "");
  EXPECT_EQ(nearest(std::string(100'000, 'd'), kCommands), "");
}

TEST(DidYouMean, IsAPhraseOrNothing) {
  EXPECT_EQ(did_you_mean("docter", kCommands), "; did you mean 'doctor'?");
  EXPECT_EQ(did_you_mean("zebra", kCommands), "");
}

TEST(RangeList, JoinsNeighbours) {
  EXPECT_EQ(range_list({}), "");
  EXPECT_EQ(range_list(std::vector{4}), "4");
  EXPECT_EQ(range_list(std::vector{0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

TEST(InQuotes, LeavesTextAloneAndEscapesTheRest) {
  EXPECT_EQ(in_quotes("poll"), "'poll'");
  EXPECT_EQ(in_quotes("größe"), "'größe'");
  EXPECT_EQ(in_quotes("a\nb\x1b[31m"), "'a\\x0ab\\x1b[31m'");
  EXPECT_EQ(in_quotes("\xC2\x9B"), "'\\xc2\\x9b'");
  EXPECT_EQ(in_quotes("\xFF\xE2\x82"), "'\\xff\\xe2\\x82'");
}

TEST(InQuotes, CutsLongText) {
  const std::string text = in_quotes(std::string(1000, 'a'));
  EXPECT_LT(text.size(), 80U);
  EXPECT_TRUE(text.ends_with("...'"));
}

TEST(Words, OfManyNamesTheFirstFewAreSaid) {
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back(std::string(1, static_cast<char>('a' + i)));
  EXPECT_EQ(first_few(names), "a, b, c, d, e, f, g, h, i, j");
  names.push_back("k");
  EXPECT_EQ(first_few(names), "a, b, c, d, e, f, g, h, i, j and 1 more");
}

}  // namespace
}  // namespace cairn
