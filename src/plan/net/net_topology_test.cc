// SPDX-License-Identifier: Apache-2.0
#include "plan/net/net_topology.h"

#include <gtest/gtest.h>

namespace cairn::plan {
namespace {

constexpr const char* kTwoHosts = R"(hosts = ["a", "b"]
switches = ["s"]
[[link]]
between = ["a", "s"]
rate = "10 Gb/s"
delay = "1 us"
[[link]]
between = ["s", "b"]
rate = "25 Gb/s"
delay = "500 ns"
)";

std::string problem_of(const std::string& text) {
  const auto parsed = parse_topology(text);
  return parsed ? "" : parsed.error().text;
}

TEST(NetTopology, FilesTellNodesAndLinks) {
  const auto t = parse_topology(kTwoHosts);
  ASSERT_TRUE(t) << t.error().text;
  EXPECT_EQ(t->hosts().size(), 2U);
  ASSERT_EQ(t->links().size(), 2U);
  EXPECT_EQ(t->links()[1].bits_per_s, 25'000'000'000U);
  EXPECT_EQ(t->links()[1].delay, 500 * net::kNanosecond);
}

TEST(NetTopology, ProblemsNameLineAndKey) {
  const std::string good = kTwoHosts;
  EXPECT_EQ(problem_of("hosts = 3\n"), "line 1, column 9: hosts is a list of names");
  EXPECT_TRUE(problem_of("hots = []\n").starts_with("line 1, column 1: there is no key 'hots'"));
  EXPECT_EQ(problem_of("hosts = [\"a\", \"a\"]\n"),
            "line 1, column 15: 'a' is already the name of another node");
  EXPECT_EQ(problem_of(good + "[[link]]\nbetween = [\"a\", \"t\"]\n"),
            "line 12, column 17: between: there is no host or switch 't'");
  EXPECT_TRUE(problem_of(good + "[[link]]\nrate = 10\n")
                  .starts_with("line 12, column 8: rate needs a unit"));
  EXPECT_TRUE(problem_of(good + "[[link]]\nbetween = [\"a\", \"s\"]\nrate = \"1 Gb/s\"\n")
                  .ends_with("this link has no delay"));
  EXPECT_EQ(problem_of("hosts = [\"a\", \"b\"]\n"),
            "a does not reach b: connect them through switches");
  EXPECT_EQ(problem_of("link = 3\n"),
            "line 1, column 8: link is a list of tables: begin each with [[link]]");
}

TEST(NetTopology, NamesAreKnownEverywhere) {
  EXPECT_EQ(load_topology("star:10")->hosts().size(), 10U);
  EXPECT_EQ(load_topology("leaf-spine:2x3x4")->nodes().size(), 12U);
  EXPECT_EQ(load_topology("clos256")->hosts().size(), 256U);
  EXPECT_EQ(
      load_topology("star:1").error().text,
      "star needs a number of hosts from 2 on, as in star:10; or give the path of a TOML file");
  EXPECT_TRUE(load_topology("ring:3").error().text.contains("there is no topology \"ring:3\""));
  EXPECT_FALSE(load_topology("/nowhere/x.toml"));
}

}  // namespace
}  // namespace cairn::plan
