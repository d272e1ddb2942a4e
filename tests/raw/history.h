// SPDX-License-Identifier: Apache-2.0
// History: what reads may find on a drive that several hosts write to at the same time.
//
// Every write has a value of its own, so that what a read finds names the write it is from. That
// write must have begun, must not have been refused, and no other one may have come in between for
// certain: begun after it had ended, and ended, with success, before the read began. A write that
// was aborted may have happened, but not after its answer; one whose host was fenced off, not after
// the answer to the fencing host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace cairn::raw_tests {

inline constexpr uint32_t kBlock = 512;

class History {
 public:
  explicit History(uint64_t blocks) : blocks_(blocks) {}

  // Times are the order in which things were noted.
  uint64_t now() { return ++clock_; }

  enum class Outcome : uint8_t {
    kDone,
    kRefused,  // it has changed nothing
    kInDoubt,  // it may have changed any of its blocks, and is over
  };
  struct Range {
    uint64_t lba = 0;
    uint32_t count = 0;
  };
  // Gives its value.
  uint64_t begin_write(Range range, uint32_t host);
  void end_write(uint64_t value, Outcome outcome);
  // Nothing that this host has begun happens any more.
  void fence(uint32_t host);

  // The blocks as this write makes them; value 0: as they were at first.
  static std::vector<std::byte> contents(uint64_t value, Range range);
  // What a read that began then has found.
  void check_read(Range range, uint64_t begun, Bytes data);
  // A compare-and-write that began then has found this value everywhere, and replaced it.
  void check_swap(Range range, uint64_t begun, uint64_t value);
  // A read of copies of these blocks: whole ones, which some write has made or nobody yet.
  void check_whole(Range range, Bytes data);
  // The value of the last write to the block that is over; a guess at what is there.
  uint64_t last_value(uint64_t lba) const;

  // What went wrong first; empty: nothing.
  const std::string& wrong() const { return wrong_; }
  void complain(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }

 private:
  static constexpr uint64_t kOpen = UINT64_MAX;
  struct Write {
    Range range;
    uint32_t host = 0;
    uint64_t begun = 0;
    uint64_t ended = kOpen;
    bool is_done = false;
    bool is_refused = false;
  };
  void check_value(uint64_t lba, uint64_t begun, uint64_t value);

  std::vector<Write> writes_;                  // by value, from 1
  std::vector<std::vector<uint64_t>> blocks_;  // the values written to each
  std::set<std::pair<uint64_t, uint64_t>> swapped_;
  uint64_t clock_ = 0;
  std::string wrong_;
};

}  // namespace cairn::raw_tests
