// SPDX-License-Identifier: Apache-2.0
// DurableStore: blocks, and what each of them may turn out to be after a power loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "world/sim/page_store.h"

namespace cairn::sim {

// Reads see the newest contents. A block that was written since it was last made durable also
// remembers its durable contents and some of those in between: any of them may be what a power
// loss leaves.
class DurableStore {
 public:
  // A position in the order of writes: flush(mark()) covers all writes so far.
  using Mark = uint64_t;

  // Only when nothing is volatile.
  void set_block_size(uint32_t size);
  uint32_t block_size() const { return block_size_; }

  void read(uint64_t offset, MutableBytes into) const { pages_.read(offset, into); }
  // Whether the block at `offset` may hold something else than zeroes.
  bool has_data(uint64_t offset) const { return pages_.has_data(offset, block_size_); }
  // Writes one block; nullopt: zeroes.
  void write_block(uint64_t offset, std::optional<Bytes> from, bool durable, Rng& rng);
  // Changes the newest contents behind everybody's back.
  void overwrite(uint64_t offset, Bytes from);

  Mark mark() const { return sequence_; }
  // Everything written up to the mark is durable.
  void flush(Mark up_to, Rng& rng) { make_durable(up_to, 1.0, rng); }
  // Nobody knows what of it is: some blocks are durable, others only a new write makes so.
  void fail_flush(Mark up_to, Rng& rng) { make_durable(up_to, 0.5, rng); }

  // Each volatile block is left as one of its versions; `keep` is the probability of the newest.
  void lose_power(double keep, Rng& rng);
  // Contents from `size` on are gone.
  void truncate(uint64_t size, uint64_t old_size);

  size_t volatile_block_count() const { return volatile_.size(); }

 private:
  static constexpr size_t kVersionsMax = 4;
  struct Version {
    Mark written = 0;
    std::vector<std::byte> image;
  };
  struct Volatile {
    std::vector<Version> older;  // the first is durable
    Mark written = 0;            // the newest contents, which are in the pages
    bool is_forgotten = false;   // by a flush that failed: only a new write makes it durable
  };
  using Blocks = std::map<uint64_t, Volatile>;

  std::vector<std::byte> take_image();
  void give_images(Volatile& block, size_t first, size_t last);
  void erase(Blocks::iterator block);
  // Makes volatile blocks durable as far as the mark goes, each with the given probability.
  void make_durable(Mark up_to, double probability, Rng& rng);

  uint32_t block_size_ = PageStore::kPageSize;
  PageStore pages_;
  Blocks volatile_;
  Mark sequence_ = 0;
  std::vector<std::vector<std::byte>> free_images_;
};

}  // namespace cairn::sim
