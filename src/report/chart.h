// SPDX-License-Identifier: Apache-2.0
// Charts as SVG text.
//
//   LineChart chart{.title = "Latency and load",
//                   .x = {.title = "IO/s"},
//                   .y = {.title = "p99 (us)", .scale = Scale::kLogarithmic},
//                   .series = {{.name = "off", .points = {{10'000, 62}, {50'000, 80}}}}};
//   std::string text = svg(chart);
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/axis.h"

namespace cairn::report {

struct Point {
  double x = 0;
  double y = 0;
};

struct Series {
  std::string name;
  std::vector<Point> points;  // in the order they are joined
  bool is_reference = false;  // dashed: somebody else's, or a bound
};

struct LineChart {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Series> series;
};

struct BarSeries {
  std::string name;
  std::vector<double> values;  // one for each group; missing ones are not drawn
  bool is_reference = false;   // paler: somebody else's
};

struct BarChart {
  std::string title;
  Axis y;
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
  bool stacked = false;  // a group's bars on top of each other; negative values are left out
};

std::string svg(const LineChart& chart);
std::string svg(const BarChart& chart);

// The share of values that are at most so large. Values that are not finite are left out.
Series cdf(std::string name, std::span<const double> values);

}  // namespace cairn::report
