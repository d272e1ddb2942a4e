// SPDX-License-Identifier: Apache-2.0
// BlockOracle: what each block of a range may hold, given what was written, acknowledged, flushed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"

namespace cairn::loadgen {

// Generations of a block that are allowed, both ends included; 0 is what was there before.
struct Allowed {
  uint32_t low = 0;
  uint32_t high = 0;
};

// One write at a time per block. Used on one core; 24 bytes per block.
class BlockOracle {
 public:
  BlockOracle(uint64_t seed, Lba first, uint64_t blocks);

  uint64_t seed() const { return seed_; }
  Lba first() const { return first_; }
  uint64_t blocks() const { return states_.size(); }

  // A request has these blocks to itself from claim() to release(); false: somebody has one.
  bool claim(Lba lba, uint64_t blocks);
  void release(Lba lba, uint64_t blocks);

  // A write begins: the generation it writes. It may show from now on.
  uint32_t write_begins(Lba lba);
  // It was acknowledged: nothing older may show. `durable`: not even after a crash.
  void write_acknowledged(Lba lba, bool durable);
  // What was acknowledged before a flush began survives a crash once it is done.
  uint64_t flush_begins() { return ++epoch_; }
  void flush_done(uint64_t flush);

  bool is_known(Lba lba) const { return state(lba).issued > 0; }
  Allowed allowed(Lba lba) const;              // now
  Allowed allowed_after_crash(Lba lba) const;  // of the target, at any time since

  // As bytes, to check in another process. load: kInvalid (none such, or cut short), kCorrupt.
  std::vector<std::byte> save() const;
  static Result<BlockOracle> load(Bytes bytes);

 private:
  struct State {
    uint64_t epoch = 0;         // flushes that had begun when `acknowledged` was
    uint32_t issued = 0;        // generation of the newest write that began
    uint32_t acknowledged = 0;  // and of the newest that ended well
    uint32_t durable = 0;       // and of the newest that survives a crash, as far as noted here
    bool is_claimed = false;
  };
  static_assert(sizeof(State) == 24);
  State& state(Lba lba) { return states_[lba.value() - first_.value()]; }
  const State& state(Lba lba) const { return states_[lba.value() - first_.value()]; }
  uint32_t durable(const State& state) const {
    return state.epoch < flushed_ ? state.acknowledged : state.durable;
  }

  uint64_t seed_;
  Lba first_;
  uint64_t epoch_ = 0;    // flushes that have begun
  uint64_t flushed_ = 0;  // the latest of them that is done
  std::vector<State> states_;
};

}  // namespace cairn::loadgen
