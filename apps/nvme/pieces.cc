// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "server/open/explain.h"

namespace cairn::apps {

task::Task<Attempt<void>> work_pieces(Flight& flight, uint64_t length, PieceWork work,
                                      Progress& progress) {
  const auto piece_at = [&](uint64_t done) { return std::min(work.piece_size, length - done); };
  Attempt<void> outcome;
  uint64_t begun = 0;
  uint64_t ended = 0;
  while (outcome && ended < length) {
    for (; !flight.is_full() && begun < length; begun += piece_at(begun)) {
      flight.start(work.start(begun, flight.next_memory().first(piece_at(begun))));
    }
    const uint64_t size = piece_at(ended);
    const MutableBytes memory = flight.oldest_memory().first(size);
    const Result<void> done = co_await flight.take();
    if (!done) {
      outcome = std::unexpected(server::cannot_do(work.what(ended, size), done.error()));
    } else if (work.ended) {
      outcome = co_await work.ended(ended, memory);
    }
    if (!outcome) break;
    progress.add(size);
    ended += size;
  }
  co_await flight.drain();
  co_return outcome;
}

std::string piece_text(const char* verb, uint64_t length, uint64_t offset) {
  return fmt::format("{} {} at byte {}", verb, text_bytes(length), offset);
}

}  // namespace cairn::apps
