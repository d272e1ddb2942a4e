// SPDX-License-Identifier: Apache-2.0
// Axis: how values become places, and the round numbers written along it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cairn::report {

enum class Scale : uint8_t { kLinear, kLogarithmic };

struct Tick {
  double value = 0;
  std::string text;
};

// What the maker of a chart says of an axis.
struct Axis {
  std::string title;  // with its unit: "latency (us)"
  Scale scale = Scale::kLinear;
  // Left out: from the values. A linear axis begins at 0 unless values are below it.
  std::optional<double> min;
  std::optional<double> max;
  // Left out: round numbers.
  std::vector<Tick> ticks;
};

// "0", "0.25", "20", "12k", "1.5M": with so many digits at most, and exact for round numbers.
std::string short_text(double value, int digits = 4);

// Whether a value has a place on such an axis: a number, above 0 where it is logarithmic, and no
// larger than 1e100.
bool has_place(Scale scale, double value);

// An axis with its values known. Ends at ticks unless min or max say otherwise.
class PlacedAxis {
 public:
  // Values without a place do not count. Without any, or when min and max make no range: 0 to 1,
  // logarithmic 1 to 10.
  PlacedAxis(const Axis& axis, std::span<const double> values);

  // 0 at the beginning, 1 at the end; beyond them for values outside min and max.
  double place(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  void fit(const Axis& axis, std::span<const double> values);
  void make_linear_ticks(const Axis& axis);
  void make_logarithmic_ticks(const Axis& axis);

  Scale scale_;
  double low_ = 0;
  double high_ = 1;
  std::vector<Tick> ticks_;
};

}  // namespace cairn::report
