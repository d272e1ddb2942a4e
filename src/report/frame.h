// SPDX-License-Identifier: Apache-2.0
// Frame: what line and bar charts have around their marks: title, legend, axes and grid.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/axis.h"
#include "report/svg.h"

namespace cairn::report {

inline constexpr Spot kChartSize{.x = 480, .y = 320};

// One name of the legend, in the colour and shape of its number.
struct LegendEntry {
  std::string name;
  bool is_reference = false;
};

std::string class_of(std::string_view kind, size_t index);

class Frame {
 public:
  enum class Key : uint8_t { kLine, kBox };
  struct Labels {
    std::string title;
    std::string x;  // may be empty
    std::string y;
    std::vector<LegendEntry> legend;
    Key key = Key::kLine;
  };
  Frame(const Labels& labels, const PlacedAxis& y);

  // The place of shares of both axes, 0 to 1.
  Spot at(double x, double y) const;
  void x_ticks(const PlacedAxis& x);
  void x_label(double share, std::string_view text);
  double width() const { return right_ - left_; }
  // In the middle, instead of marks.
  void say(std::string_view text);

  Svg& svg() { return svg_; }
  std::string finish() { return svg_.finish(); }

 private:
  void draw_legend(const Labels& labels);
  void draw_y(const PlacedAxis& y);

  Svg svg_;
  double left_ = 0;
  double right_ = 0;
  double top_ = 0;
  double bottom_ = 0;
};

}  // namespace cairn::report
