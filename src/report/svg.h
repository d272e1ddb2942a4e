// SPDX-License-Identifier: Apache-2.0
// The few SVG elements that charts are made of, as text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn::report {

// For text and for attributes, of SVG and of HTML.
std::string escape(std::string_view text);

struct Spot {
  double x = 0;
  double y = 0;
};

// A drawing of a fixed size that scales with its place. Carries its own colours, for light and dark
// surroundings, so that it can stand alone as a file or inside a page. Coordinates are rounded to
// a tenth; `style` names a class of style_sheet().
class Svg {
 public:
  // `title` is what a reader who cannot see it is told.
  Svg(Spot size, std::string_view title);

  enum class Anchor : uint8_t { kStart, kMiddle, kEnd };
  void text(Spot at, std::string_view style, Anchor anchor, std::string_view text);
  void line(Spot from, Spot to, std::string_view style);
  void polyline(const std::vector<Spot>& spots, std::string_view style);
  // `hint` is shown when somebody points at it.
  void rectangle(Spot corner, Spot size, std::string_view style, std::string_view hint = {});
  // One of kMarkers shapes, about 7 across.
  static constexpr size_t kMarkers = 4;
  void marker(Spot at, size_t shape, std::string_view style, std::string_view hint = {});

  std::string finish();

 private:
  std::string out_;
};

// Classes of series: "line1" to "line6", "mark1" ..., "fill1" ...; with "dashed" and "hollow".
inline constexpr size_t kColours = 6;
std::string_view style_sheet();

}  // namespace cairn::report
