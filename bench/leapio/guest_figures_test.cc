// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/guest_figures.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace cairn::bench::leapio {
namespace {

Paper empty_paper() { return {.report = Report("paper_leapio"), .html = {}, .charts = {}}; }

// Ways differ by a factor in all loads; rounds by another, which is noise that they share.
std::string tool_output() {
  const std::pair<const char*, double> ways[] = {
      {"fv", 100}, {"vh", 200}, {"cairn", 300}, {"remote_kernel", 400}, {"remote_cairn", 500}};
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [way, rate] : ways) {
    for (const char* workload : {"c", "a"}) {
      for (const int threads : {1, 16}) {
        nlohmann::json row = {{"way", way}, {"workload", workload}, {"threads", threads}};
        row["per_second"] = {rate * threads, rate * threads * 2, rate * threads * 7};
        row["read_p50_us"] = {10, 30, 20};
        row["read_p99_us"] = {50};
        row["read_p999_us"] = {60};
        if (row["way"] != "fv") row["server_cpu_us"] = {7};
        rows.push_back(row);
      }
    }
  }
  return nlohmann::json{{"accelerator", "tcg"}, {"rows", rows}}.dump();
}

struct Shown {
  Paper paper;
  std::string html;
};

Shown show(std::vector<std::string> figures) {
  const Result<std::vector<GuestRow>> rows = parse_guest_rows(tool_output());
  EXPECT_TRUE(rows);
  Options options;
  options.figures = std::move(figures);
  report::Page page("t", "i");
  Shown shown{.paper = empty_paper(), .html = {}};
  put_guest_figures(options, *rows, page, shown.paper);
  shown.html = page.html();
  return shown;
}

TEST(GuestFigures, EachFigureHasTheWaysItCompares) {
  const Shown shown = show({"7", "8", "9"});
  const auto json = shown.paper.report.json();
  EXPECT_EQ(json["results"].size(), 4U * (1 + 3 + 2));
  const Measurement* fv = shown.paper.report.find("fig8_read_16", "FV");
  ASSERT_NE(fv, nullptr);
  EXPECT_EQ(fv->value(), 3200);
  EXPECT_EQ(fv->extras.size(), 3U);  // no processor time of a server: there is none
  const Measurement* remote = shown.paper.report.find("fig9_mixed_1", "kernel");
  ASSERT_NE(remote, nullptr);
  EXPECT_EQ(remote->extras.size(), 4U);
  EXPECT_EQ(remote->extras[0], (std::pair<std::string, double>("read_p50_us", 20)));
  EXPECT_EQ(shown.paper.charts.size(), 6U);
  EXPECT_EQ(shown.paper.charts[3].name, "leapio-8-mixed");
  EXPECT_NE(shown.html.find("What is emulated"), std::string::npos);
  EXPECT_NE(shown.html.find("not the same each time"), std::string::npos);
  EXPECT_NE(shown.html.find("PT has no counterpart"), std::string::npos);
}

TEST(GuestFigures, RatiosAreThoseOfOperationsPerSecond) {
  const auto ratios = show({"8", "9"}).paper.report.json()["ratios"];
  EXPECT_EQ(ratios.size(), 3U);
  EXPECT_NEAR(ratios["leap_ycsb_vs_fv"].get<double>(), 3, 1e-9);
  EXPECT_NEAR(ratios["leap_ycsb_vs_vh"].get<double>(), 1.5, 1e-9);
  EXPECT_NEAR(ratios["leap_remote_vs_kernel"].get<double>(), 1.25, 1e-9);
}

TEST(GuestFigures, OnlyWhatIsWantedIsShown) {
  const Shown shown = show({"7"});
  EXPECT_TRUE(shown.paper.report.json()["ratios"].empty());
  EXPECT_EQ(shown.html.find("Figure 8:"), std::string::npos);
}

TEST(GuestFigures, WhatTheToolSaysIsNotTrusted) {
  for (const char* text :
       {"", "{", "[]", "7", R"({"rows": 3})", R"({"rows": []})", R"({"rows": [1, null, "x", []]})",
        R"({"problem": "no QEMU"})", R"({"rows": [{"way": 1, "workload": [], "threads": "4"}]})",
        R"({"rows": [{"way": "fv", "workload": "c", "threads": 4}]})",
        R"({"rows": [{"way": "fv", "threads": 4, "per_second": [0]}]})",
        R"({"rows": [{"way": "fv", "threads": 4, "per_second": {"a": 1}}]})"}) {
    const Result<std::vector<GuestRow>> rows = parse_guest_rows(text);
    EXPECT_FALSE(rows) << text;
  }
  EXPECT_EQ(parse_guest_problem(R"({"problem": "no QEMU"})"), "no QEMU");
  EXPECT_EQ(parse_guest_problem(R"({"problem": 3})"), "");
  EXPECT_EQ(parse_guest_problem("["), "");
}

}  // namespace
}  // namespace cairn::bench::leapio
