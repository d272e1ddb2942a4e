// SPDX-License-Identifier: Apache-2.0
#include "report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace cairn::report {

namespace {

constexpr int kTicksWanted = 5;
constexpr int kTicksMax = 12;
// Far beyond any quantity, and far enough from the end of double to divide and subtract.
constexpr double kValueMax = 1e100;

double nearest_power(double value) { return std::pow(10, std::floor(std::log10(value))); }

// The round step that gives about as many ticks as wanted: 1, 2 or 5 times a power of ten.
double step_for(double span) {
  const double rough = span / kTicksWanted;
  const double power = nearest_power(rough);
  for (const double times : {1.0, 2.0, 5.0}) {
    if (rough <= times * power) return times * power;
  }
  return 10 * power;
}

}  // namespace

std::string short_text(double value, int digits) {
  if (!std::isfinite(value)) return "?";
  const double size = std::abs(value);
  if (size >= 1e9) return fmt::format("{:.{}g}G", value / 1e9, digits);
  if (size >= 1e6) return fmt::format("{:.{}g}M", value / 1e6, digits);
  if (size >= 1e4) return fmt::format("{:.{}g}k", value / 1e3, digits);
  if (size < 1e-12) return "0";
  return fmt::format("{:.{}g}", value, std::max(digits, size >= 1000 ? 4 : 0));
}

bool has_place(Scale scale, double value) {
  const bool is_drawable = std::abs(value) <= kValueMax;  // false for what is no number
  return is_drawable && (scale == Scale::kLinear || value >= 1 / kValueMax);
}

PlacedAxis::PlacedAxis(const Axis& axis, std::span<const double> values) : scale_(axis.scale) {
  fit(axis, values);
  if (!axis.ticks.empty()) {
    ticks_ = axis.ticks;
  } else if (scale_ == Scale::kLinear) {
    make_linear_ticks(axis);
  } else {
    make_logarithmic_ticks(axis);
  }
  std::erase_if(ticks_, [this](const Tick& tick) {
    const double at = place(tick.value);
    return !has_place(scale_, tick.value) || at < -1e-9 || at > 1 + 1e-9;
  });
}

void PlacedAxis::fit(const Axis& axis, std::span<const double> values) {
  const bool is_linear = scale_ == Scale::kLinear;
  std::vector<double> placed(values.begin(), values.end());
  for (const Tick& tick : axis.ticks) placed.push_back(tick.value);
  if (is_linear && axis.ticks.empty()) placed.push_back(0);
  std::erase_if(placed, [this](double value) { return !has_place(scale_, value); });
  low_ = placed.empty() ? 1 : std::ranges::min(placed);
  high_ = placed.empty() ? low_ : std::ranges::max(placed);
  if (axis.min && has_place(scale_, *axis.min)) low_ = *axis.min;
  if (axis.max && has_place(scale_, *axis.max)) high_ = *axis.max;
  if (low_ >= high_) high_ = is_linear ? low_ + 1 : low_ * 10;
}

void PlacedAxis::make_linear_ticks(const Axis& axis) {
  const double step = step_for(high_ - low_);
  if (!axis.min) low_ = std::floor(low_ / step + 1e-9) * step;
  if (!axis.max) high_ = std::ceil(high_ / step - 1e-9) * step;
  const double first = std::ceil(low_ / step - 1e-9);
  for (int i = 0; i < kTicksMax; ++i) {
    const double value = (first + i) * step;
    if (value > high_ + step * 1e-9) break;
    ticks_.push_back({value, short_text(value)});
  }
}

void PlacedAxis::make_logarithmic_ticks(const Axis& axis) {
  // Few decades have room for 2 and 5 between their powers.
  const double decades = std::log10(high_) - std::log10(low_);
  const std::array<double, 3> parts = {1, 2, 5};
  const size_t used = decades <= 3 ? parts.size() : 1;
  std::vector<double> all;
  for (double power = nearest_power(low_); power <= high_ * 10 && all.size() < 400; power *= 10) {
    for (size_t i = 0; i < used; ++i) all.push_back(power * parts[i]);
  }
  if (!axis.min) {
    const auto above = std::ranges::find_if(all, [&](double at) { return at > low_ * 1.0001; });
    if (above != all.begin()) low_ = *std::prev(above);
  }
  if (!axis.max) {
    const auto end = std::ranges::find_if(all, [&](double at) { return at >= high_ * 0.9999; });
    if (end != all.end()) high_ = *end;
  }
  const auto every = static_cast<size_t>(std::ceil(decades / kTicksMax));
  for (size_t i = 0; i < all.size(); i += std::max<size_t>(every, 1)) {
    ticks_.push_back({all[i], short_text(all[i])});
  }
}

double PlacedAxis::place(double value) const {
  if (scale_ == Scale::kLinear) return (value - low_) / (high_ - low_);
  return (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_));
}

}  // namespace cairn::report
