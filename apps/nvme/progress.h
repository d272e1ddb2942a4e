// SPDX-License-Identifier: Apache-2.0
// How far a transfer is, on stderr when that is a terminal.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "env/env.h"

namespace cairn::apps {

class Progress {
 public:
  // `what` is a word such as "read"; total 0: unknown.
  Progress(env::Env& env, std::string what, uint64_t total);
  // Wipes the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(uint64_t bytes);
  uint64_t done() const { return done_; }
  Duration elapsed() const { return env_.now() - start_; }

 private:
  env::Env& env_;
  std::string what_;
  uint64_t total_;
  uint64_t done_ = 0;
  Time start_;
  Time shown_;
  bool is_terminal_;
};

// "300 KiB in 1.2 ms, 0.250 GB/s".
std::string speed_text(uint64_t bytes, Duration elapsed);
double bytes_per_second(uint64_t bytes, Duration elapsed);

}  // namespace cairn::apps
