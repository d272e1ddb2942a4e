// SPDX-License-Identifier: Apache-2.0
// A modelled drive beside a plain map of its sectors, for tests and fuzzers.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/flash/model.h"

namespace cairn::flash {

// The first law of the tables that is broken, or nothing: every logical and translation page has a
// flash page of its own that knows it, blocks count what is valid, and every block is free, a
// frontier or full. Holds at any moment.
std::string broken_law(FlashModel& model);

// Remembers of each sector whether it holds data, and what a power cut may leave. Requests that
// touch the same sectors, one of them changing them, follow each other; others overlap in time.
class CheckedDrive final : private CompletionSink {
 public:
  // `occupancy` above zero: a used drive.
  CheckedDrive(const Parameters& parameters, double occupancy);

  void submit(HostRequest request);
  void let_pass(Nanos duration);
  // Until the drive is idle; then compares all it knows.
  void settle();
  void cut_power();

  FlashModel& model() { return model_; }
  // What was wrong first; empty: nothing.
  const std::string& problem() const { return problem_; }

 private:
  struct Sector {
    bool holds = false;         // data, when all that was acknowledged counts
    bool may_hold = false;      // after a power cut
    bool may_be_empty = true;   // likewise
    bool at_stake = false;      // a power cut may undo the last change
    uint64_t changed = 0;       // by which acknowledgement
    uint32_t changes_open = 0;  // not acknowledged yet
  };
  struct Open {
    HostRequest request;
    uint64_t first = 0;         // sector, over all streams
    uint64_t acknowledged = 0;  // changes before it came
    bool changes() const { return request.op == Op::kWrite || request.op == Op::kTrim; }
  };

  void completed(const Completion& completion) override;
  void acknowledge_change(const Open& open);
  void acknowledge_flush(const Open& open);
  bool must_wait(const Open& open) const;
  bool holds(uint64_t sector);
  void compare_idle();
  void settle_sector(Sector& sector, bool holds);
  void fail(std::string text);

  FlashModel model_;
  std::vector<Sector> sectors_;  // of a page side by side, pages by number
  std::set<uint64_t> at_stake_;
  std::map<uint64_t, Open> open_;  // by cookie
  uint64_t next_cookie_ = 0;
  uint64_t acknowledged_ = 0;
  std::string problem_;
};

// Plays a script of four bytes per step: what, where (two), how much and how long to wait before
// the next. Ends with an idle drive. Returns what was wrong, or nothing.
std::string play(CheckedDrive& drive, std::span<const uint8_t> script);

}  // namespace cairn::flash
