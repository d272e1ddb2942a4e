// SPDX-License-Identifier: Apache-2.0
#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "report/frame.h"

namespace cairn::report {

namespace {

constexpr double kBarWidthMax = 56;

bool has_place(const LineChart& chart, const Point& point) {
  return has_place(chart.x.scale, point.x) && has_place(chart.y.scale, point.y);
}

std::string hint_of(std::string_view series, std::string_view x, double y) {
  return fmt::format("{}: {} at {}", series, short_text(y), x);
}

// The values of a group below bar number `end`, on top of each other.
double height_of(const BarChart& chart, size_t group, size_t end) {
  double height = 0;
  for (size_t i = 0; i < end; ++i) {
    const std::vector<double>& values = chart.series[i].values;
    if (group < values.size() && std::isfinite(values[group])) {
      height += std::max(values[group], 0.0);
    }
  }
  return height;
}

std::vector<double> heights_of(const BarChart& chart) {
  std::vector<double> all;
  if (chart.stacked) {
    for (size_t group = 0; group < chart.groups.size(); ++group) {
      all.push_back(height_of(chart, group, chart.series.size()));
    }
    return all;
  }
  for (const BarSeries& series : chart.series) {
    const size_t count = std::min(series.values.size(), chart.groups.size());
    all.insert(all.end(), series.values.begin(),
               series.values.begin() + static_cast<ptrdiff_t>(count));
  }
  return all;
}

class Bars {
 public:
  Bars(const BarChart& chart, const PlacedAxis& y, Frame& frame)
      : chart_(chart), y_(y), frame_(frame) {}

  // How many were drawn.
  size_t draw() {
    const double group_width = 1.0 / static_cast<double>(chart_.groups.size());
    const size_t side_by_side = chart_.stacked ? 1 : chart_.series.size();
    const double bars_width = std::min(
        group_width * 0.8, static_cast<double>(side_by_side) * kBarWidthMax / frame_.width());
    for (size_t group = 0; group < chart_.groups.size(); ++group) {
      const double left = static_cast<double>(group) * group_width;
      frame_.x_label(left + group_width / 2, chart_.groups[group]);
      for (size_t i = 0; i < chart_.series.size(); ++i) {
        const std::vector<double>& values = chart_.series[i].values;
        if (group >= values.size() || !has_place(chart_.y.scale, values[group])) continue;
        draw_bar(group, i, left + (group_width - bars_width) / 2, bars_width);
      }
    }
    return drawn_;
  }

 private:
  void draw_bar(size_t group, size_t index, double left, double width) {
    const BarSeries& series = chart_.series[index];
    const double value = series.values[group];
    if (chart_.stacked && value <= 0) return;
    double bottom = chart_.y.scale == Scale::kLinear ? 0 : y_.low();
    double top = value;
    if (chart_.stacked) {
      bottom = height_of(chart_, group, index);
      top = bottom + value;
    } else {
      width /= static_cast<double>(chart_.series.size());
      left += width * static_cast<double>(index);
    }
    const Spot one = frame_.at(left, y_.place(std::max(bottom, top)));
    const Spot other = frame_.at(left + width, y_.place(std::min(bottom, top)));
    std::string style = class_of("fill", index);
    if (series.is_reference) style += " hollow " + class_of("line", index);
    // A little of the surface shows between neighbours.
    const double gap = chart_.stacked ? 0 : 2;
    const double height = other.y - one.y - (chart_.stacked && index > 0 ? 1 : 0);
    const Spot size{std::max(other.x - one.x - gap, 1.0), std::max(height, 0.0)};
    frame_.svg().rectangle(one, size, style, hint_of(series.name, chart_.groups[group], value));
    ++drawn_;
    const std::string text = short_text(value, 3);
    const bool has_room = width * frame_.width() >= 7.0 * static_cast<double>(text.size());
    if (!chart_.stacked && has_room) {
      const Spot above{(one.x + other.x - gap) / 2, one.y - 4};
      frame_.svg().text(above, "value", Svg::Anchor::kMiddle, text);
    }
  }

  const BarChart& chart_;
  const PlacedAxis& y_;
  Frame& frame_;
  size_t drawn_ = 0;
};

}  // namespace

std::string svg(const LineChart& chart) {
  std::vector<double> xs;
  std::vector<double> ys;
  std::vector<LegendEntry> legend;
  for (const Series& series : chart.series) {
    legend.push_back({series.name, series.is_reference});
    for (const Point& point : series.points) {
      if (!has_place(chart, point)) continue;
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
  }
  const PlacedAxis x(chart.x, xs);
  const PlacedAxis y(chart.y, ys);
  Frame frame({chart.title, chart.x.title, chart.y.title, legend, Frame::Key::kLine}, y);
  frame.x_ticks(x);
  if (xs.empty()) frame.say("no data");
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    const std::string line = class_of("line", i) + (series.is_reference ? " dashed" : "");
    std::vector<Spot> run;
    for (const Point& point : series.points) {
      if (!has_place(chart, point)) {
        frame.svg().polyline(std::exchange(run, {}), line);
        continue;
      }
      run.push_back(frame.at(x.place(point.x), y.place(point.y)));
    }
    frame.svg().polyline(run, line);
    if (series.points.size() > 60) continue;  // marks would hide the line
    for (const Point& point : series.points) {
      if (!has_place(chart, point)) continue;
      frame.svg().marker(frame.at(x.place(point.x), y.place(point.y)), i, class_of("fill", i),
                         hint_of(series.name, short_text(point.x), point.y));
    }
  }
  return frame.finish();
}

std::string svg(const BarChart& chart) {
  const PlacedAxis y(chart.y, heights_of(chart));
  std::vector<LegendEntry> legend;
  for (const BarSeries& series : chart.series) {
    legend.push_back({series.name, series.is_reference});
  }
  Frame frame({chart.title, "", chart.y.title, legend, Frame::Key::kBox}, y);
  if (Bars(chart, y, frame).draw() == 0) frame.say("no data");
  return frame.finish();
}

Series cdf(std::string name, std::span<const double> values) {
  std::vector<double> sorted;
  for (const double value : values) {
    if (std::isfinite(value)) sorted.push_back(value);
  }
  std::ranges::sort(sorted);
  Series series{.name = std::move(name)};
  for (size_t i = 0; i < sorted.size(); ++i) {
    // Of equal values the last one tells the share.
    if (i + 1 < sorted.size() && sorted[i + 1] == sorted[i]) continue;
    series.points.push_back(
        {sorted[i], static_cast<double>(i + 1) / static_cast<double>(sorted.size())});
  }
  return series;
}

}  // namespace cairn::report
