// SPDX-License-Identifier: Apache-2.0
// BlockStore: a drive as threads that block see it.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::bench {

// Whole blocks to or from memory, which is lent until the call returns.
struct Transfer {
  bool writes = false;
  uint64_t block = 0;
  MutableBytes bytes;
};

class BlockStore {
 public:
  virtual ~BlockStore() = default;
  virtual uint32_t block_size() const = 0;
  virtual uint64_t blocks() const = 0;
  // The largest transfer, in bytes.
  virtual uint32_t transfer_max() const = 0;
  // All of them at once; returns when all have ended, with the first error. From any thread.
  virtual Result<void> transfer(std::span<const Transfer> transfers) = 0;
  // What was written before survives a crash.
  virtual Result<void> flush() = 0;
};

}  // namespace cairn::bench
