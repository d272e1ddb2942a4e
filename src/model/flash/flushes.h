// SPDX-License-Identifier: Apache-2.0
// Who waits until no power cut can undo what was asked for before.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "model/flash/host_link.h"
#include "model/flash/shared.h"
#include "model/flash/translation_pages.h"

namespace cairn::flash {

// A flush waits for everything that was on its way to flash before it, and for translation pages
// that tell of trims. Flushes end in the order in which they came.
class Flushes {
 public:
  Flushes(Shared& shared, HostLink& link, TranslationPages& translation)
      : domains_(shared.domains),
        requests_(shared.requests),
        pending_(shared.pending),
        undo_log_(shared.undo_log),
        link_(link),
        translation_(translation) {}

  bool empty() const { return flushes_.empty(); }
  // The request waits; what was dirty is on its way already. It has one page left until then.
  void add(uint32_t request) {
    flushes_.push_back({.request = request, .epoch = pending_.raise(), .trims = undo_log_.end()});
    persist_trims();
    finish();
  }
  // A program has ended.
  void finish_ready() {
    if (!flushes_.empty()) finish();
  }
  void translation_page_programmed(uint32_t page) {
    undo_log_.drop_trims(
        [&](const Undo& trim) { return trim.persisting && translation_page_of(trim) == page; });
    if (flushes_.empty()) return;
    persist_trims();
    finish();
  }
  // Writes the translation pages of trims that only DRAM knows. One that is on its way to flash
  // already does not tell of the newest trims: they wait for its next journey.
  void persist_trims() {
    std::set<uint32_t> written;
    undo_log_.drop_trims([&](Undo& trim) {
      const uint32_t page = translation_page_of(trim);
      if (trim.persisting || (translation_.is_departing(page) && !written.contains(page))) {
        return false;
      }
      trim.persisting = true;
      if (written.insert(page).second) translation_.set_departing(page);
      return false;
    });
    for (const uint32_t page : written) translation_.write_back_page(page);
  }

  // Power failed: nobody waits.
  void clear() { flushes_.clear(); }

 private:
  struct Flush {
    uint32_t request;
    uint32_t epoch;
    UndoLog::Order trims;  // those before
  };

  void finish() {
    while (!flushes_.empty()) {
      const Flush flush = flushes_.front();
      if (!pending_.has_fallen(flush.epoch) || undo_log_.has_trim_before(flush.trims)) return;
      flushes_.pop_front();
      requests_[flush.request].pages_left = 0;
      link_.finish_if_done(flush.request);
    }
  }
  uint32_t translation_page_of(const Undo& trim) const {
    return translation_.of(trim.lpa, stream_of(domains_, trim.lpa));
  }

  const std::vector<Domain>& domains_;
  Pool<RequestState>& requests_;
  PendingPrograms& pending_;
  UndoLog& undo_log_;
  HostLink& link_;
  TranslationPages& translation_;

  std::deque<Flush> flushes_;
};

}  // namespace cairn::flash
