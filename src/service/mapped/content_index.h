// SPDX-License-Identifier: Apache-2.0
// ContentIndex: units of a drive, how many refer to each, and which one may hold given contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/sip_hash.h"

namespace cairn::drive {

// A fast hash, the same on every machine. Not for those who must not be fooled.
uint64_t content_hash(Bytes bytes);

class ContentIndex {
 public:
  // The key is a secret of this table alone: whoever chooses contents, and so their hashes, does
  // not choose where they lie in it.
  ContentIndex(uint64_t units, const SipKey& key);

  uint32_t references(uint32_t unit) const { return references_[unit]; }
  uint64_t hash(uint32_t unit) const { return hashes_[unit]; }

  // A unit whose contents have that hash, and somebody refers to.
  std::optional<uint32_t> find(uint64_t hash) const;
  // How many slots are looked at to find it, or that it is not there.
  size_t probes(uint64_t hash) const;

  // One more refers to a unit that somebody refers to. False: there cannot be more.
  bool refer(uint32_t unit);
  // The first to refer to a unit with contents of that hash. From now on it is found, unless
  // another unit is found by it.
  void add(uint32_t unit, uint64_t hash);
  // One less. True: nobody refers to it, and it is not found any more.
  bool drop(uint32_t unit);

 private:
  // Where the hash is, or the free slot where it would be.
  size_t slot_of(uint64_t hash) const;
  size_t home_of(uint64_t hash) const { return sip_hash(key_, hash) & (slots_.size() - 1); }
  void clear(size_t slot);

  SipKey key_;
  std::vector<uint32_t> references_;  // by unit
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t>
      slots_;  // units, counted from 1, at home_of() their hash or soon after; 0: free
};

}  // namespace cairn::drive
