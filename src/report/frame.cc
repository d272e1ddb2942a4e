// SPDX-License-Identifier: Apache-2.0
#include "report/frame.h"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::report {

namespace {

constexpr double kMargin = 12;
constexpr double kLineHeight = 18;
constexpr double kKeyWidth = 26;

// Nobody can measure text here; letters of the usual fonts are about so wide.
constexpr double kLetter = 7.1;
constexpr double kWideLetter = 10;
double width_of(std::string_view text) {
  const auto wide = std::ranges::count_if(
      text, [](char c) { return (c >= 'A' && c <= 'Z') || c == '+' || c == 'm' || c == 'w'; });
  return kLetter * static_cast<double>(text.size()) +
         (kWideLetter - kLetter) * static_cast<double>(wide);
}

}  // namespace

std::string class_of(std::string_view kind, size_t index) {
  return fmt::format("{}{}", kind, index % kColours + 1);
}

Frame::Frame(const Labels& labels, const PlacedAxis& y) : svg_(kChartSize, labels.title) {
  svg_.text({kMargin, 22}, "title", Svg::Anchor::kStart, labels.title);
  top_ = 32;
  draw_legend(labels);
  if (!labels.y.empty()) {
    svg_.text({kMargin, top_ + 12}, "label", Svg::Anchor::kStart, labels.y);
  }
  top_ += 26;
  bottom_ = kChartSize.y - (labels.x.empty() ? 28 : 46);
  right_ = kChartSize.x - kMargin - 8;
  if (!labels.x.empty()) {
    svg_.text({right_, kChartSize.y - 10}, "label", Svg::Anchor::kEnd, labels.x);
  }
  draw_y(y);
}

void Frame::draw_legend(const Labels& labels) {
  if (labels.legend.size() < 2) return;  // the title says it
  double x = kMargin;
  for (size_t i = 0; i < labels.legend.size(); ++i) {
    const LegendEntry& entry = labels.legend[i];
    const double width = kKeyWidth + width_of(entry.name) + 12;
    if (x > kMargin && x + width > kChartSize.x - kMargin) {
      x = kMargin;
      top_ += kLineHeight;
    }
    const double middle = top_ + 8;
    if (labels.key == Key::kLine) {
      const std::string dash = entry.is_reference ? " dashed" : "";
      svg_.polyline({{x, middle}, {x + 20, middle}}, class_of("line", i) + dash);
      svg_.marker({x + 10, middle}, i, class_of("fill", i));
    } else {
      const std::string paler = entry.is_reference ? " hollow " + class_of("line", i) : "";
      svg_.rectangle({x + 4, middle - 6}, {12, 12}, class_of("fill", i) + paler);
    }
    svg_.text({x + kKeyWidth, middle + 4}, "legend", Svg::Anchor::kStart, entry.name);
    x += width;
  }
  top_ += kLineHeight;
}

void Frame::draw_y(const PlacedAxis& y) {
  size_t longest = 1;
  for (const Tick& tick : y.ticks()) longest = std::max(longest, tick.text.size());
  left_ = kMargin + 8 + kLetter * static_cast<double>(longest);
  for (const Tick& tick : y.ticks()) {
    const Spot from = at(0, y.place(tick.value));
    svg_.line(from, {right_, from.y}, "grid");
    svg_.text({left_ - 8, from.y + 4}, "tick", Svg::Anchor::kEnd, tick.text);
  }
  svg_.line(at(0, 0), at(1, 0), "axis");
}

Spot Frame::at(double x, double y) const {
  const double within = std::clamp(y, 0.0, 1.0);
  return {left_ + std::clamp(x, 0.0, 1.0) * (right_ - left_), bottom_ - within * (bottom_ - top_)};
}

void Frame::x_ticks(const PlacedAxis& x) {
  double free_from = 0;
  for (const Tick& tick : x.ticks()) {
    const Spot foot = at(x.place(tick.value), 0);
    svg_.line(foot, {foot.x, foot.y + 4}, "axis");
    const double half = width_of(tick.text) / 2;
    if (foot.x - half < free_from) continue;  // no room beside the one before
    svg_.text({foot.x, foot.y + 18}, "tick", Svg::Anchor::kMiddle, tick.text);
    free_from = foot.x + half + 4;
  }
}

void Frame::x_label(double share, std::string_view text) {
  const Spot foot = at(share, 0);
  svg_.text({foot.x, foot.y + 18}, "tick", Svg::Anchor::kMiddle, text);
}

void Frame::say(std::string_view text) {
  svg_.text(at(0.5, 0.5), "label", Svg::Anchor::kMiddle, text);
}

}  // namespace cairn::report
