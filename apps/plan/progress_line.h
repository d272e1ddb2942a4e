// SPDX-License-Identifier: Apache-2.0
// How far a long run is and how long it will still take, on a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"

namespace cairn::apps {

// "[=====     ]  52%  NOTE, 1 min 5 s to go". `part` is done, 0 to 1; below 0 no time is told.
std::string progress_line(double part, double seconds_left, std::string_view note);

// A line on stderr that is rewritten as the run goes on and taken away at its end. Silent when it
// is not wanted, and when stderr is no terminal.
class ProgressLine {
 public:
  // Looks at the clock every so many times it is told something.
  explicit ProgressLine(bool wanted, uint64_t look_every = 1);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // What was done before this process does not count into the time that is left.
  void begin_at(double part) { begun_at_ = part; }
  // `part` of the run is done. `note` is called for what the line shall say besides, when it is
  // rewritten.
  template <class Note>
  void at(double part, Note note) {
    if (!shown_ || ++told_ % look_every_ != 0 || !is_time()) return;
    show(part, note());
  }

 private:
  bool is_time();
  void show(double part, std::string_view note) const;

  uint64_t look_every_;
  uint64_t told_ = 0;
  double begun_at_ = 0;
  bool shown_;
  Time start_;
  Time last_;
};

}  // namespace cairn::apps
