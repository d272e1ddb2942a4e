// SPDX-License-Identifier: Apache-2.0
// The way into the flash model: a drive that says when requests are done.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/flash/bus.h"
#include "model/flash/cache_manager.h"
#include "model/flash/collections.h"
#include "model/flash/collector.h"
#include "model/flash/flushes.h"
#include "model/flash/host_link.h"
#include "model/flash/mapper.h"
#include "model/flash/scheduler.h"
#include "model/flash/shared.h"
#include "model/flash/translation_pages.h"

namespace cairn::flash {

// Sectors of one page, one bit each.
struct PageSectors {
  uint32_t lpa = 0;
  uint64_t sectors = 0;
};

// The event loop over the stations of a request's way: host link -> cache -> mapper -> scheduler ->
// bus, and back; the collector beside them. A station calls those behind it, and what it has to
// tell to those before it goes through here.
class FlashModel final : RequestSink, FlashSink, SpaceSink, ReadSink {
 public:
  // `parameters` passed check().
  explicit FlashModel(const Parameters& parameters);

  Nanos now() const { return shared_.clock.now; }
  Nanos next_event() const;
  void advance(Nanos until, CompletionSink& sink);
  void submit(const HostRequest& request, Nanos now);
  // Power fails, and comes back at once; not in mqsim mode. The model was advanced to `now`.
  // Requests in the drive are never completed. A drive whose cache is protected finishes what it
  // has to do on its capacitors, which takes model time, and loses nothing. Otherwise each page is
  // what was last programmed of it; told are the sectors, by page, whose last write or trim is
  // gone. The mapping is recovered from the flash pages, but the mapping cache is cold; how long
  // recovery takes is not modelled.
  std::vector<PageSectors> power_loss(Nanos now);
  // Puts the mapping entry of a written page into the cache. Preconditioning only.
  void warm_mapping(uint32_t lpa, uint32_t stream) { translation_.warm(lpa, stream); }

  const Parameters& parameters() const { return shared_.parameters; }
  const Quirks& quirks() const { return shared_.quirks; }
  const Geometry& geometry() const { return shared_.geometry; }
  const std::vector<Domain>& domains() const { return shared_.domains; }
  const Counters& counters() const { return shared_.counters; }
  PageTable& pages() { return shared_.pages; }
  Blocks& blocks() { return shared_.blocks; }
  const Blocks& blocks() const { return shared_.blocks; }
  // By translation page: its flash page plus one, 0 while it is in DRAM alone.
  const Zeroed<uint32_t>& translation_pages() const { return translation_.places(); }
  MappingCache& mapping_cache() { return translation_.cache(); }
  DataCache& cache() { return cache_.cache(); }
  const DataCache& cache() const { return cache_.cache(); }
  uint32_t gc_start_blocks() const { return shared_.reserve.start; }
  uint32_t rga_choices() const { return collector_.rga_choices(); }
  uint64_t in_flight() const {
    const Counters& c = shared_.counters;
    return c.requests_submitted - c.requests_completed - c.requests_cut;
  }
  // Whether a power cut would lose what is in the cache.
  bool has_volatile_cache() const { return shared_.has_volatile_cache(); }
  Nanos channel_busy(uint32_t channel) const { return bus_.channel_busy(channel); }
  Nanos die_busy(uint32_t die) const { return bus_.die_busy(die); }
  size_t table_bytes() const;
  size_t pool_bytes() const;

 private:
  void start_request(uint32_t request) override { cache_.start_request(request); }
  void serviced(uint32_t transaction) override;
  void page_at_hand(uint32_t die) override { collector_.copy_back(die); }
  void channel_free(uint32_t channel) override { scheduler_.wake(channel); }
  void block_filled(uint32_t plane) override { collector_.check(plane); }
  void read_done(uint32_t transaction) override { cache_.read_done(transaction); }

  void flash_event(uint64_t order);
  void release_block(const Transaction& transaction);
  void mapping_done(const Transaction& transaction);
  // Every queue is empty and everybody idle; tables stay.
  void stop();

  Shared shared_;
  Collections collections_;
  Bus bus_;
  Scheduler scheduler_;
  HostLink link_;
  TranslationPages translation_;
  Mapper mapper_;
  Flushes flushes_;
  Collector collector_;
  CacheManager cache_;
};

}  // namespace cairn::flash
