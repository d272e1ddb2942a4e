// SPDX-License-Identifier: Apache-2.0
#include "service/common/journal_chain.h"

namespace cairn::drive {

JournalChain::Piece JournalChain::encode(const JournalId& id, Rng& rng, const Blocks& blocks,
                                         Bytes records, size_t block_size, MutableBytes memory) {
  Piece piece{.first = next};
  while ((piece.count + 1) * block_size <= memory.size()) {
    const Bytes rest = records.subspan(piece.taken);
    const size_t fit = records_that_fit(rest, block_size);
    const bool is_last = fit == rest.size();
    if (is_last && (!blocks.has_last || (rest.empty() && piece.count > 0))) break;
    const uint64_t drawn = rng.next();
    const JournalHead head{.id = id,
                           .generation = generation,
                           .tag = drawn,
                           .previous = tag,
                           .index = static_cast<uint32_t>(next),
                           .batch = static_cast<uint32_t>(blocks.batch),
                           .kind = static_cast<uint16_t>(is_last ? blocks.last_kind : blocks.kind)};
    encode_journal_block(head, rest.first(fit),
                         memory.subspan(piece.count * block_size, block_size));
    tag = drawn;
    ++next;
    ++piece.count;
    piece.taken += fit;
  }
  return piece;
}

}  // namespace cairn::drive
