// SPDX-License-Identifier: Apache-2.0
// BlockModel: what each block of a drive may hold, now and after a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::stack {

// The contents of a block are one number; 0 is a block of zeroes. One change of a block at a time.
class BlockModel {
 public:
  explicit BlockModel(size_t blocks) : blocks_(blocks) {}
  size_t size() const { return blocks_.size(); }

  // A change begins: from now on the block may hold `value`.
  void begin(size_t block, uint64_t value) { blocks_[block].history.push_back(value); }
  // It succeeded: the block holds what it wrote. `durable`: after a crash too.
  void succeeded(size_t block, bool durable);
  // What succeeded before a flush began survives a crash once it is done.
  std::vector<uint64_t> flush_begins() const;
  void flush_done(const std::vector<uint64_t>& begun);

  // Whether a block may hold `value` now. If so, and `is_settled` (nothing changes it), it holds
  // that from then on: a drive does not change its mind.
  bool read(size_t block, uint64_t value, bool is_settled);
  // Whether it held `value` once, and no flush says that it holds a later one.
  bool may_have_lost(size_t block, uint64_t value) const;
  // Whether a flush or a durable change covers all that was done to it.
  bool is_safe(size_t block) const { return blocks_[block].history.size() == 1; }
  // Whether there is only one value it can hold, and which.
  bool is_certain(size_t block) const;
  uint64_t value(size_t block) const { return blocks_[block].history.back(); }

  // A medium below lost power under the drive, which goes on, or a flush failed: until it is
  // written again, a block that was not safe may hold any of what it might hold after a crash.
  void lose_certainty();

  // The program was killed and not the machine: until a read tells, a block may hold any of what it
  // might hold after a crash, and what it then holds a crash may still take back.
  void killed();

  // The machine lost power, and the block holds `value` now: whether it may.
  bool read_after_crash(size_t block, uint64_t value);

 private:
  struct Block {
    std::vector<uint64_t> history = {0};  // values; those before `safe` are forgotten
    size_t current = 0;                   // the oldest of the history it may hold now
    uint64_t forgotten = 0;               // how many there were before
    bool is_doubtful = false;             // certainty was lost: only a write brings it back
  };
  static void forget(Block& block, size_t count);
  std::vector<Block> blocks_;
};

}  // namespace cairn::stack
