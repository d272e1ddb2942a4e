// SPDX-License-Identifier: Apache-2.0
// How far a long run is and how long it will still take, on a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"

namespace cairn::apps {

// "[=====     ]  52%  NOTE, 1 min 5 s to go": the rest takes as long per step as the part that is
// done took. Without a step done, or with more than `total`, no time is told.
std::string progress_line(uint64_t done, uint64_t total, Duration elapsed, std::string_view note);

// A line on stderr that is rewritten as the run goes on and taken away at its end. Silent when it
// is not wanted, and when stderr is no terminal.
class ProgressLine {
 public:
  // Of `total` steps; looks at the clock after every `look_every` (at least 1) of them.
  ProgressLine(uint64_t total, uint64_t look_every, bool wanted);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // One step more. `note` is called for what the line shall say besides, when it is rewritten.
  template <class Note>
  void step(Note note) {
    if (!shown_ || ++done_ % look_every_ != 0 || !is_time()) return;
    show(note());
  }

 private:
  bool is_time();
  void show(std::string_view note) const;

  uint64_t total_;
  uint64_t look_every_;
  uint64_t done_ = 0;
  bool shown_;
  Time start_;
  Time last_;
};

}  // namespace cairn::apps
