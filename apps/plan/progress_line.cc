// SPDX-License-Identifier: Apache-2.0
#include "apps/plan/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "loadgen/meters.h"

namespace cairn::apps {

namespace {

constexpr Duration kBetweenLines = Duration::from_seconds(0.1);
constexpr uint64_t kWidth = 50;

std::string duration_text(double seconds) {
  const auto whole = static_cast<uint64_t>(std::ceil(std::min(seconds, 1e9)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

std::string progress_line(double part, double seconds_left, std::string_view note) {
  const double whole = std::clamp(part, 0.0, 1.0);
  std::string line =
      fmt::format("[{:<{}}] {:3}%  {}", std::string(static_cast<size_t>(whole * kWidth), '='),
                  kWidth, static_cast<int>(whole * 100), note);
  if (seconds_left >= 0) line += fmt::format(", {} to go", duration_text(seconds_left));
  return line;
}

ProgressLine::ProgressLine(bool wanted, uint64_t look_every)
    : look_every_(look_every), shown_(wanted && isatty(STDERR_FILENO) != 0) {
  if (shown_) last_ = start_ = loadgen::now();
}

ProgressLine::~ProgressLine() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

bool ProgressLine::is_time() {
  const Time now = loadgen::now();
  if (now - last_ < kBetweenLines) return false;
  last_ = now;
  return true;
}

// The rest takes as long, for each part of the run, as what was done here took.
void ProgressLine::show(double part, std::string_view note) const {
  const double done = part - begun_at_;
  const double left = done > 0 && part <= 1 ? (last_ - start_).seconds() * (1 - part) / done : -1;
  fmt::print(stderr, "\r\x1b[K{}", progress_line(part, left, note));
}

}  // namespace cairn::apps
