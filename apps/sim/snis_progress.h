// SPDX-License-Identifier: Apache-2.0
// How far a simulation is, and when it will be done: a line on a terminal's stderr.
#pragma once

#include <string>

#include "base/units.h"

namespace cairn::apps {

class SnisProgress {
 public:
  SnisProgress();
  // Wipes the line.
  ~SnisProgress();
  SnisProgress(const SnisProgress&) = delete;
  SnisProgress& operator=(const SnisProgress&) = delete;

  // `part` of all work is done, 0 to 1; `what` runs now.
  void show(double part, const std::string& what);
  // What was done before this process does not count into the time that is left.
  void begin_at(double part) { begun_at_ = part; }

 private:
  Time start_;
  Time shown_;
  double begun_at_ = 0;
  bool is_terminal_;
  bool drawn_ = false;
};

// "iteration 3 [=====     ] 31%, 12 s to go".
std::string progress_text(const std::string& what, double part, double seconds_left);

}  // namespace cairn::apps
