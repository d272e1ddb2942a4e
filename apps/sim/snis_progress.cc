// SPDX-License-Identifier: Apache-2.0
#include "apps/sim/snis_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench/workload.h"

namespace cairn::apps {

namespace {
constexpr Duration kShowEvery = 100_ms;
constexpr size_t kWidth = 40;
}  // namespace

std::string progress_text(const std::string& what, double part, double seconds_left) {
  const double whole = std::clamp(part, 0.0, 1.0);
  const auto filled = static_cast<size_t>(whole * static_cast<double>(kWidth));
  std::string left = "";
  if (std::isfinite(seconds_left)) {
    left = seconds_left < 120 ? fmt::format(", {:.0f} s to go", seconds_left)
                              : fmt::format(", {:.0f} min to go", seconds_left / 60);
  }
  return fmt::format("{} [{:<{}}] {:.0f}%{}", what, std::string(filled, '='), kWidth, whole * 100,
                     left);
}

SnisProgress::SnisProgress()
    : start_(bench::now()), shown_(start_), is_terminal_(::isatty(STDERR_FILENO) == 1) {}

SnisProgress::~SnisProgress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void SnisProgress::show(double part, const std::string& what) {
  if (!is_terminal_) return;
  const Time now = bench::now();
  if (now - shown_ < kShowEvery) return;
  shown_ = now;
  const double done = part - begun_at_;
  const double left =
      done > 0 ? (now - start_).seconds() * std::max(0.0, 1 - part) / done : INFINITY;
  fmt::print(stderr, "\r\x1b[K{}", progress_text(what, part, left));
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace cairn::apps
