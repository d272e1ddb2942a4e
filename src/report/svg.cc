// SPDX-License-Identifier: Apache-2.0
#include "report/svg.h"

#include <fmt/format.h>

#include <cmath>

namespace cairn::report {

namespace {

// To a tenth, without a needless point: "12", "12.5".
std::string number(double value) {
  const double rounded = std::round(value * 10) / 10;
  return fmt::format("{}", rounded == 0 ? 0.0 : rounded);
}

std::string with_hint(std::string_view element, std::string_view attributes,
                      std::string_view hint) {
  if (hint.empty()) return fmt::format("<{} {}/>\n", element, attributes);
  return fmt::format("<{0} {1}><title>{2}</title></{0}>\n", element, attributes, escape(hint));
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Neighbouring colours differ for colour-blind readers too; markers and dashes say the same again.
std::string_view style_sheet() {
  return R"(.chart{--surface:#fcfcfb;--ink:#1b1b19;--soft:#5c5b57;--grid:#e4e3de;--axis:#8d8c86;
--c1:#2a78d6;--c2:#d4572a;--c3:#16966a;--c4:#b97a00;--c5:#7d55c7;--c6:#77766f}
@media (prefers-color-scheme:dark){.chart{--surface:#1a1a19;--ink:#f3f2ee;--soft:#b6b5ae;
--grid:#33322f;--axis:#77766f;--c1:#5598e7;--c2:#ec835a;--c3:#35b888;--c4:#d9a02f;--c5:#a58fe8;
--c6:#9a9992}}
.chart text{font-family:system-ui,sans-serif;font-size:13px;fill:var(--soft)}
.chart .title{font-size:15px;font-weight:600;fill:var(--ink)}
.chart .legend,.chart .value{fill:var(--ink)}
.chart .value{font-size:12px}
.chart .surface{fill:var(--surface)}
.chart .grid{stroke:var(--grid);stroke-width:1}
.chart .axis{stroke:var(--axis);stroke-width:1}
.chart polyline{fill:none;stroke-width:2;stroke-linejoin:round}
.chart .dashed{stroke-dasharray:5 4}
.chart .mark{stroke:var(--surface);stroke-width:1}
.chart .line1{stroke:var(--c1)}.chart .line2{stroke:var(--c2)}.chart .line3{stroke:var(--c3)}
.chart .line4{stroke:var(--c4)}.chart .line5{stroke:var(--c5)}.chart .line6{stroke:var(--c6)}
.chart .fill1{fill:var(--c1)}.chart .fill2{fill:var(--c2)}.chart .fill3{fill:var(--c3)}
.chart .fill4{fill:var(--c4)}.chart .fill5{fill:var(--c5)}.chart .fill6{fill:var(--c6)}
.chart .hollow{fill-opacity:.25;stroke-width:1.5}
)";
}

Svg::Svg(Spot size, std::string_view title) {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {0} {1}\" "
      "width=\"{0}\" height=\"{1}\" role=\"img\" aria-label=\"{2}\">\n<style>{3}</style>\n",
      number(size.x), number(size.y), escape(title), style_sheet());
  rectangle({0, 0}, size, "surface");
}

void Svg::text(Spot at, std::string_view style, Anchor anchor, std::string_view text) {
  constexpr std::string_view kAnchors[] = {"start", "middle", "end"};
  out_ += fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                      number(at.x), number(at.y), style, kAnchors[static_cast<size_t>(anchor)],
                      escape(text));
}

void Svg::line(Spot from, Spot to, std::string_view style) {
  out_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n",
                      number(from.x), number(from.y), number(to.x), number(to.y), style);
}

void Svg::polyline(const std::vector<Spot>& spots, std::string_view style) {
  if (spots.size() < 2) return;
  std::string places;
  for (const Spot& spot : spots) {
    places += fmt::format("{}{},{}", places.empty() ? "" : " ", number(spot.x), number(spot.y));
  }
  out_ += fmt::format("<polyline points=\"{}\" class=\"{}\"/>\n", places, style);
}

void Svg::rectangle(Spot corner, Spot size, std::string_view style, std::string_view hint) {
  out_ += with_hint(
      "rect",
      fmt::format("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"", number(corner.x),
                  number(corner.y), number(size.x), number(size.y), style),
      hint);
}

void Svg::marker(Spot at, size_t shape, std::string_view style, std::string_view hint) {
  const auto path = [&](std::string_view steps) {
    out_ += with_hint(
        "path",
        fmt::format("d=\"M{} {}{}z\" class=\"mark {}\"", number(at.x), number(at.y), steps, style),
        hint);
  };
  switch (shape % kMarkers) {
    case 0:
      out_ += with_hint("circle",
                        fmt::format("cx=\"{}\" cy=\"{}\" r=\"4\" class=\"mark {}\"", number(at.x),
                                    number(at.y), style),
                        hint);
      break;
    case 1:
      path("m-3.5 -3.5h7v7h-7");
      break;
    case 2:
      path("m0 -4.5l4.5 8h-9");
      break;
    default:
      path("m0 -5l5 5l-5 5l-5 -5");
  }
}

std::string Svg::finish() { return out_ + "</svg>\n"; }

}  // namespace cairn::report
