// SPDX-License-Identifier: Apache-2.0
// What the stations of a request's way share: what the drive is made of, the time, what is on its
// way, and the tables.
#pragma once

#include <cstdint>
#include <vector>

#include "model/flash/blocks.h"
#include "model/flash/counters.h"
#include "model/flash/event_queue.h"
#include "model/flash/geometry.h"
#include "model/flash/page_table.h"
#include "model/flash/pending_programs.h"
#include "model/flash/quirks.h"
#include "model/flash/timing.h"
#include "model/flash/transaction.h"
#include "model/flash/undo_log.h"

namespace cairn::flash {

struct Shared {
  // `p` passed check().
  explicit Shared(const Parameters& p)
      : parameters(p),
        quirks(p),
        geometry(p),
        timing(p, quirks),
        domains(partition(p, entries_per_translation_page(p))),
        reserve(p, quirks),
        pages(domains.back().first_lpa + domains.back().logical_pages),
        blocks(parameters, geometry),
        pending(quirks),
        undo_log(has_volatile_cache(), geometry, blocks) {}
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  // Whether a power cut would lose what is in the cache.
  bool has_volatile_cache() const { return !parameters.cache_protected; }

  // A transaction on a page; `stream` gives its priority.
  uint32_t new_transaction(Kind kind, Source source, const PagePart& part, uint32_t stream) {
    const uint32_t index = transactions.take();
    Transaction& t = transactions[index];
    t.kind = kind;
    t.source = source;
    t.priority = parameters.streams[stream].priority;
    t.stream = static_cast<uint8_t>(stream);
    t.lpa = part.lpa;
    t.sectors = part.sectors;
    t.at_hand = part.at_hand;
    t.bytes = part.count * kSectorBytes;
    t.stamp = quirks.orders_data_by_time() ? clock.now : pending.next_version();
    if (kind == Kind::kProgram) t.epoch = pending.asked_for();
    return index;
  }

  // Power failed: nothing is on its way, and nobody uses a block. The undo log is left.
  void clear() {
    events.clear();
    requests.clear();
    transactions.clear();
    blocks.settle();
    pending.clear();
  }

  const Parameters parameters;
  const Quirks quirks;
  const Geometry geometry;
  const Timing timing;
  const std::vector<Domain> domains;
  const Reserve reserve;

  Clock clock;
  EventHeap events;
  Counters counters;
  Pool<RequestState> requests;
  Pool<Transaction> transactions;

  PageTable pages;
  Blocks blocks;
  PendingPrograms pending;
  UndoLog undo_log;  // empty while the cache is protected
};

}  // namespace cairn::flash
