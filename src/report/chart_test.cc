// SPDX-License-Identifier: Apache-2.0
#include "report/chart.h"

#include <gtest/gtest.h>

#include <fstream>  // lint: allow(golden files)
#include <limits>
#include <sstream>

#include "report/page.h"
#include "report/svg.h"

namespace cairn::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string golden(const std::string& name) {
  const std::string path = std::string(CAIRN_GOLDEN_FOLDER) + "/" + name;
  std::ifstream file(path);  // lint: allow(golden files)
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}
// Without its style sheet, which golden files need not repeat.
std::string drawing(const std::string& svg) {
  const size_t begin = svg.find("<style>");
  const size_t end = svg.find("</style>\n");
  return svg.substr(0, begin) + svg.substr(end + 9);
}
size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

LineChart lines() {
  return {.title = "Latency and load",
          .x = {.title = "IO/s"},
          .y = {.title = "p99 (us)", .scale = Scale::kLogarithmic},
          .series = {{.name = "off", .points = {{10'000, 60}, {50'000, 900}}},
                     {.name = "paper", .points = {{10'000, 100}}, .is_reference = true}}};
}
BarChart bars() {
  return {.title = "Throughput",
          .y = {.title = "IO/s"},
          .groups = {"read", "write"},
          .series = {{.name = "ours", .values = {3, 4}}, {.name = "theirs", .values = {2, kNan}}}};
}

TEST(Chart, LinesAreDrawnAsEver) { EXPECT_EQ(drawing(svg(lines())), golden("lines.svg")); }

TEST(Chart, BarsAreDrawnAsEver) { EXPECT_EQ(drawing(svg(bars())), golden("bars.svg")); }

TEST(Chart, StackedBarsStandOnEachOther) {
  BarChart chart = bars();
  chart.stacked = true;
  EXPECT_EQ(drawing(svg(chart)), golden("stacked.svg"));
}

TEST(Chart, ALineBreaksAtAValueWithoutAPlace) {
  LineChart chart = lines();
  chart.series = {{.name = "a", .points = {{1, 1}, {2, 2}, {3, kNan}, {4, 2}, {5, 1}}}};
  const std::string text = svg(chart);
  EXPECT_EQ(count(text, "<polyline"), 2U);
  EXPECT_EQ(count(text, "<circle"), 4U);
  EXPECT_EQ(text.find("nan"), std::string::npos);
}

TEST(Chart, NothingToShowSaysSo) {
  LineChart line = lines();
  line.series = {{.name = "a", .points = {{kNan, 1}, {1, kInfinity}, {1, -1}}}};
  BarChart bar = bars();
  bar.series = {{.name = "a", .values = {kNan, kInfinity}}};
  BarChart no_groups = bars();
  no_groups.groups.clear();
  for (const std::string& text :
       {svg(line), svg(bar), svg(no_groups), svg(LineChart{}), svg(BarChart{})}) {
    EXPECT_EQ(count(text, ">no data</text>"), 1U);
    EXPECT_EQ(text.find("nan"), std::string::npos);
    EXPECT_EQ(text.find("inf"), std::string::npos);
  }
}

TEST(Chart, TextIsEscaped) {
  LineChart chart = lines();
  chart.title = "<script>\"&'";
  chart.series[0].name = "a<b";
  const std::string text = svg(chart);
  EXPECT_EQ(text.find("<script"), std::string::npos);
  EXPECT_NE(text.find("&lt;script&gt;&quot;&amp;&#39;"), std::string::npos);
  EXPECT_NE(text.find("a&lt;b"), std::string::npos);
}

TEST(Chart, ManyNamesTakeSeveralRows) {
  LineChart chart = lines();
  for (int i = 0; i < 9; ++i) chart.series.push_back({.name = "a rather long name", .points = {}});
  EXPECT_EQ(count(svg(chart), "a rather long name"), 9U);
}

TEST(Cdf, ClimbsToOneOverSortedValues) {
  const std::vector<double> values = {3, 1, kNan, 3, 2};
  const Series series = cdf("a", values);
  ASSERT_EQ(series.points.size(), 3U);
  EXPECT_EQ(series.points[0].x, 1);
  EXPECT_EQ(series.points[0].y, 0.25);
  EXPECT_EQ(series.points[1].y, 0.5);
  EXPECT_EQ(series.points[2].x, 3);
  EXPECT_EQ(series.points[2].y, 1);
  EXPECT_TRUE(cdf("none", {}).points.empty());
}

TEST(Page, NeedsNothingElse) {
  Page page("i10 & others", "What <we> did.");
  page.heading("One");
  page.paragraph("A paragraph.");
  page.figure(svg(lines()), "A caption");
  page.figure(svg(bars()), "");
  page.table({"load", "IO/s"}, {{"read", "1"}, {"a<b", "2"}});
  page.figure(svg(bars()), "last");
  const std::string html = page.html();
  EXPECT_EQ(html.find("src="), std::string::npos);
  EXPECT_EQ(html.find("href="), std::string::npos);
  EXPECT_EQ(count(html, "http"), count(html, "http://www.w3.org/2000/svg"));
  EXPECT_EQ(count(html, "<div"), count(html, "</div>"));
  EXPECT_EQ(count(html, "<figure>"), 3U);
  EXPECT_NE(html.find("<title>i10 &amp; others</title>"), std::string::npos);
  EXPECT_NE(html.find("<td>a&lt;b</td><td>2</td>"), std::string::npos);
}

TEST(Chart, WideLettersKeepTheNextNameOfTheLegendAway) {
  const auto place_of_second = [](const std::string& first) {
    LineChart chart = lines();
    chart.series = {{.name = first, .points = {{1, 1}}}, {.name = "second", .points = {{1, 1}}}};
    const std::string drawn = svg(chart);
    const size_t text = drawn.rfind("<text x=\"", drawn.find(">second<"));
    return std::stod(drawn.substr(text + 9));
  };
  EXPECT_GT(place_of_second("+SNAP+BG"), place_of_second("snapshot") + 20);
}

}  // namespace
}  // namespace cairn::report
