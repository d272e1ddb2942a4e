// SPDX-License-Identifier: Apache-2.0
#include "model/flash/engine.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/portable_math.h"

namespace cairn::flash {

namespace {

// Bytes of a mapping entry: the flash page, the written sectors, and in DRAM the logical page too.
uint32_t entry_bytes(const Parameters& p, uint32_t page_numbers) {
  const double bits =
      page_numbers * binary_log(static_cast<double>(p.physical_pages())) + p.sectors_per_page();
  return static_cast<uint32_t>(std::ceil(bits / 8));
}

uint64_t sum_of_pages(const std::vector<Domain>& domains) {
  return domains.back().first_lpa + domains.back().logical_pages;
}

uint64_t sum_of_translation_pages(const std::vector<Domain>& domains) {
  return domains.back().first_translation_page + domains.back().translation_pages + 1;
}

// The reference never collects more victims than this in a plane, and keeps as many blocks free.
constexpr uint32_t kMqsimVictims = 10;
// The reference's collector draws from this seed, whatever its configuration says.
constexpr uint32_t kMqsimCollectorSeed = 432;

}  // namespace

Engine::Engine(const Parameters& p)
    : parameters_(p),
      mqsim_(p.mqsim),
      geometry_(p),
      timing_(p),
      rng_(p.seed),
      reference_rng_(kMqsimCollectorSeed),
      mapping_entry_bytes_(entry_bytes(p, 1)),
      entries_per_translation_(p.page_bytes / mapping_entry_bytes_),
      domains_(partition(p, entries_per_translation_)),
      streams_(p.streams.size()),
      pages_(sum_of_pages(domains_)),
      blocks_(parameters_, geometry_),
      mapping_cache_(pages_, p.mapping_cache_bytes / entry_bytes(p, 2),
                     sum_of_translation_pages(domains_)),
      cache_(pages_, p.cache_bytes / p.page_bytes),
      translation_ppa_plus_one_(sum_of_translation_pages(domains_)),
      arrivals_(sum_of_translation_pages(domains_)),
      overfull_(geometry_.planes()),
      queues_(size_t{kQueues} * geometry_.planes()),
      chips_(geometry_.chips()),
      dies_(geometry_.dies()),
      channels_(geometry_.channels()),
      woken_((geometry_.channels() + 63) / 64),
      plane_load_(geometry_.planes()) {
  const auto share = [&](double part) {
    return std::max(1U, static_cast<uint32_t>(part * p.blocks_per_plane));
  };
  const auto streams = static_cast<uint32_t>(p.streams.size());
  gc_start_blocks_ = share(p.gc_threshold);
  gc_hard_blocks_ = share(p.gc_hard_threshold);
  if (mqsim_) {
    victims_per_plane_ = kMqsimVictims;
    stop_blocks_ = kMqsimVictims;
    gc_start_blocks_ = std::max(gc_start_blocks_, kMqsimVictims);
  } else {
    // A collection may open a collector and a translation block per stream before it frees one.
    // Collecting early costs spare space, so never more than half of it is kept free.
    const auto spare = static_cast<uint32_t>(p.over_provisioning * p.blocks_per_plane);
    victims_per_plane_ = 1;
    stop_blocks_ = 2 * streams + 1;
    const uint32_t half = spare > 3 * streams ? (spare - 3 * streams) / 2 : 0;
    gc_start_blocks_ = std::max(stop_blocks_ + 1, std::min(gc_start_blocks_, half));
    gc_hard_blocks_ = std::clamp(gc_hard_blocks_, stop_blocks_ + 1, gc_start_blocks_);
  }
  rga_choices_ = std::max(1, static_cast<int>(std::bit_width(p.blocks_per_plane)) - 1);
  write_back_sectors_max_ =
      static_cast<uint32_t>(p.planes()) * p.write_back_pages * p.sectors_per_page();
  store_mapping_table();
}

Nanos Engine::next_event() const {
  return std::min({down_.next().time, up_.next().time, dram_.next().time, flash_.next().time});
}

void Engine::advance(Nanos until, CompletionSink& sink) {
  for (;;) {
    const Moment down = down_.next();
    const Moment up = up_.next();
    const Moment dram = dram_.next();
    const Moment flash = flash_.next();
    const Moment link = down < up ? down : up;
    const Moment inside = dram < flash ? dram : flash;
    const Moment first = link < inside ? link : inside;
    if (first.time > until) break;
    if (first.time == kNever) return;
    now_ = first.time;
    ++counters_.events;
    if (first.order == flash.order) {
      const uint32_t what = flash_.pop();
      if ((what & kDieEvent) != 0) {
        Die& die = dies_[what & ~kDieEvent];
        // A suspended command's end is no longer what the die waits for.
        if (die.executing && die.finish_order == flash.order) die_done(what & ~kDieEvent);
      } else if ((what & kCommandEvent) != 0) {
        start_request(what & ~kCommandEvent);
      } else {
        transfer_done(what);
      }
    } else if (first.order == down.order) {
      delivered_to_drive(down_.finish());
      down_.resume(now_, order_);
    } else if (first.order == up.order) {
      delivered_to_host(up_.finish(), sink);
      up_.resume(now_, order_);
    } else {
      dram_done(dram_.finish());
      dram_.resume(now_, order_);
    }
  }
  if (until != kNever) now_ = std::max(now_, until);
}

size_t Engine::table_bytes() const {
  return pages_.bytes() + blocks_.table_bytes() + translation_ppa_plus_one_.bytes() +
         arrivals_.bytes();
}

size_t Engine::pool_bytes() const {
  return requests_.peak() * sizeof(RequestState) + transactions_.peak() * sizeof(Transaction) +
         collections_.peak() * sizeof(Collection) + waiters_.peak() * sizeof(Waiter) +
         mapping_cache_.used() * sizeof(MappingCache::Slot) +
         cache_.used() * sizeof(DataCache::Slot);
}

}  // namespace cairn::flash
