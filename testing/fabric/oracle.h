// SPDX-License-Identifier: Apache-2.0
// Oracle: what may be found on a drive, block by block, by somebody who knows everything that was
// asked of it and how that ended.
//
// Every write has a value of its own. A block is owned by one worker with one operation at a time;
// then what a read may find follows from what was acknowledged, what is in doubt, and whether the
// box has lost its power meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace cairn::fabric_tests {

inline constexpr uint32_t kBlock = 4096;

// A block's contents: its value and its place, over and over. Value 0 is zeroes.
void fill_block(MutableBytes block, uint64_t value, uint64_t lba);
// The value, or a complaint in `wrong`.
uint64_t value_of(Bytes block, uint64_t lba, std::string& wrong);

class Oracle {
 public:
  explicit Oracle(uint64_t blocks) : blocks_(blocks) {}

  uint64_t new_value() { return ++last_value_; }
  // The box starts, perhaps after a power loss.
  void box_started();

  // An operation on blocks, from before it is asked for until it has ended.
  struct Asked {
    uint64_t lba = 0;
    uint64_t count = 0;
    uint64_t value = 0;                         // of a write
    uint64_t start = 0;                         // how often the box had started
    std::vector<std::set<uint64_t>> seen_then;  // of a read
  };
  Asked begin_write(uint64_t lba, uint64_t count, uint64_t value);
  // A failed write may have changed any of its blocks; it does not change them later.
  void end_write(const Asked& asked, bool succeeded, bool durable);
  Asked begin_read(uint64_t lba, uint64_t count) const;
  void end_read(const Asked& asked, Bytes data);
  // Of blocks that nobody wrote while it ran.
  void end_flush(uint64_t lba, uint64_t count);

  // What went wrong first; empty: nothing.
  const std::string& wrong() const { return wrong_; }
  void complain(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }

 private:
  struct Block {
    std::set<uint64_t> now = {0};          // what a read may find
    std::set<uint64_t> after_crash = {0};  // what a power loss may leave
  };
  std::vector<Block> blocks_;
  uint64_t last_value_ = 0;
  uint64_t starts_ = 0;
  std::string wrong_;
};

}  // namespace cairn::fabric_tests
