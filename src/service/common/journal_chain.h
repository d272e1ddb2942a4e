// SPDX-License-Identifier: Apache-2.0
// JournalChain: the blocks of one half of a journal's area, in the order they are written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/rng.h"
#include "service/common/journal_format.h"

namespace cairn::drive {

struct JournalChain {
  uint64_t generation = 0;  // 0: there is none yet
  uint64_t next = 0;        // the index of the block that comes next
  uint64_t tag = 0;         // of the block before it

  struct Blocks {
    JournalBlockKind kind = JournalBlockKind::kChanges;
    JournalBlockKind last_kind = JournalBlockKind::kChanges;  // of the one with the last record
    uint64_t batch = 0;    // the index of the first one that is written together with them
    bool has_last = true;  // false: more records follow, so a block that is not full waits
  };
  struct Piece {
    uint64_t first = 0;  // index
    uint64_t count = 0;  // blocks
    size_t taken = 0;    // bytes of records
  };
  // The next blocks, as many as `memory` holds, of records from the front on. At least one when
  // the last is among them, also without records.
  Piece encode(const JournalId& id, Rng& rng, const Blocks& blocks, Bytes records,
               size_t block_size, MutableBytes memory);
};

}  // namespace cairn::drive
