// SPDX-License-Identifier: Apache-2.0
#include "apps/sim/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench/workload.h"

namespace cairn::apps {

namespace {

constexpr Duration kBetweenLines = Duration::from_seconds(0.1);
constexpr uint64_t kWidth = 50;

std::string in_words(double seconds) {
  const auto whole = static_cast<uint64_t>(std::ceil(std::min(seconds, 1e9)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

std::string progress_line(uint64_t done, uint64_t total, Duration elapsed, std::string_view note) {
  const double part =
      total == 0 ? 1 : std::min(static_cast<double>(done) / static_cast<double>(total), 1.0);
  std::string line =
      fmt::format("[{:<{}}] {:3}%  {}", std::string(static_cast<size_t>(part * kWidth), '='),
                  kWidth, static_cast<int>(part * 100), note);
  if (part > 0 && done <= total) {
    line += fmt::format(", {} to go", in_words(elapsed.seconds() * (1 - part) / part));
  }
  return line;
}

ProgressLine::ProgressLine(uint64_t total, uint64_t look_every, bool wanted)
    : total_(total), look_every_(look_every), shown_(wanted && isatty(STDERR_FILENO) != 0) {
  if (shown_) last_ = start_ = bench::now();
}

ProgressLine::~ProgressLine() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

bool ProgressLine::is_time() {
  const Time now = bench::now();
  if (now - last_ < kBetweenLines) return false;
  last_ = now;
  return true;
}

void ProgressLine::show(std::string_view note) const {
  fmt::print(stderr, "\r\x1b[K{}", progress_line(done_, total_, last_ - start_, note));
}

}  // namespace cairn::apps
