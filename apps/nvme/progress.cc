// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace cairn::apps {

namespace {
constexpr Duration kShowEvery = 200_ms;
}  // namespace

Progress::Progress(env::Env& env, std::string what, uint64_t total)
    : env_(env),
      what_(std::move(what)),
      total_(total),
      start_(env.now()),
      shown_(start_),
      is_terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (is_terminal_ && shown_ != start_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::add(uint64_t bytes) {
  done_ += bytes;
  const Time now = env_.now();
  if (!is_terminal_ || now - shown_ < kShowEvery) return;
  shown_ = now;
  std::string part = text_bytes(done_);
  if (total_ > 0) {
    part += fmt::format(" of {}, {}%", text_bytes(total_), done_ * 100 / total_);
  }
  fmt::print(stderr, "\r\x1b[K{} {}, {:.3f} GB/s", what_, part,
             bytes_per_second(done_, elapsed()) / 1e9);
  std::fflush(stderr);
}

double bytes_per_second(uint64_t bytes, Duration elapsed) {
  return elapsed > 0_s ? static_cast<double>(bytes) / elapsed.seconds() : 0;
}

std::string speed_text(uint64_t bytes, Duration elapsed) {
  return fmt::format("{} in {}, {:.3f} GB/s", text_bytes(bytes), text(elapsed),
                     bytes_per_second(bytes, elapsed) / 1e9);
}

}  // namespace cairn::apps
