// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/serve/show.h"

namespace cairn::server {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// The text of a line in the column that begins where `title` does in the first line.
std::string column(const std::vector<std::string>& lines, size_t line, const std::string& title) {
  const size_t at = lines[0].find(title);
  if (at >= lines[line].size()) return "";
  const std::string rest = lines[line].substr(at);
  return rest.substr(0, rest.find("  "));
}

const std::string kProblem = "file /legs/b: no such file; make it, or take the leg out";

Json answer_with(Json lost_leg) {
  return {{"drives",
           {{{"name", "safe"},
             {"health", "degraded"},
             {"layers",
              {{{"path", "0"}, {"name", "mirror"}, {"size", 8U << 20}, {"iops", 5U}},
               {{"path", "0.0"}, {"name", "file:/legs/a"}, {"size", 8U << 20}, {"iops", 5U}},
               std::move(lost_leg)}}}}}};
}

TEST(ShowText, ALayerThatIsNotThereTellsWhyAmongItsFacts) {
  const std::vector<std::string> lines = lines_of(
      show_text(answer_with({{"path", "0.1"}, {"name", "file:/legs/b"}, {"problem", kProblem}})));
  ASSERT_GE(lines.size(), 4u);
  EXPECT_EQ(column(lines, 1, "SIZE"), "8 MiB");
  EXPECT_EQ(column(lines, 3, "SIZE"), "-");
  EXPECT_EQ(column(lines, 3, "IOPS"), "-");
  EXPECT_EQ(column(lines, 3, "ERRORS"), "-");
  EXPECT_EQ(lines[3].find(kProblem), lines[0].find("FACTS")) << lines[3];
}

TEST(ShowText, ALayerThatWasThereKeepsItsSizeWhenItFails) {
  const std::vector<std::string> lines = lines_of(show_text(answer_with(
      {{"path", "0.1"}, {"name", "file:/legs/b"}, {"size", 4U << 20}, {"problem", kProblem}})));
  ASSERT_GE(lines.size(), 4u);
  EXPECT_EQ(column(lines, 3, "SIZE"), "4 MiB");
  EXPECT_EQ(lines[3].find(kProblem), lines[0].find("FACTS")) << lines[3];
}

}  // namespace
}  // namespace cairn::server
