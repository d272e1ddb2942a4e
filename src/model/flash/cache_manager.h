// SPDX-License-Identifier: Apache-2.0
// Requests become pages here, and pages meet the data cache.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/flash/data_cache.h"
#include "model/flash/flushes.h"
#include "model/flash/host_link.h"
#include "model/flash/mapper.h"
#include "model/flash/scheduler.h"
#include "model/flash/shared.h"

namespace cairn::flash {

// A write is done when it is in DRAM, if its stream has a write cache. What may be on its way from
// the cache to flash at once is bounded; a write beyond that waits.
class CacheManager {
 public:
  CacheManager(Shared& shared, HostLink& link, Mapper& mapper, Flushes& flushes,
               Scheduler& scheduler);

  // A request is in the drive, with its data if it writes.
  void start_request(uint32_t request);

  // When the DRAM is done with what it does.
  Moment next_dram() const { return dram_.next(); }
  void dram_done();

  // What flash has done for a request or for the cache.
  void read_done(uint32_t transaction);
  void program_done(uint32_t transaction);

  DataCache& cache() { return cache_; }
  const DataCache& cache() const { return cache_; }

  // Adds the sectors that DRAM alone has.
  void add_dirty(std::map<uint32_t, uint64_t>& lost);
  // Power failed: the cache is empty, and nobody waits.
  void clear();

 private:
  enum class DramUse : uint8_t { kUser, kEviction, kFill };
  struct DramJob {
    DramUse use = DramUse::kUser;
    uint32_t request = kNone;
    uint32_t sectors = 0;
    Fifo evicted;
  };
  // Programs on their way out of the cache.
  struct Outgoing {
    Fifo programs;
    uint32_t sectors = 0;
  };

  PagePart next_part(RequestState& request);
  void start_read(uint32_t request);
  void start_write(uint32_t request);
  void to_cache(uint32_t request);
  bool put_part(uint32_t request, Outgoing& evicted, Outgoing& write_back, uint32_t& dram_sectors);
  void write_through_cache(uint32_t request, const PagePart& part, uint32_t slot, Nanos stamp,
                           Outgoing& write_back);
  void trim(uint32_t request);
  void flush(uint32_t request);
  void write_back_dirty();
  bool make_room(Outgoing& evicted);
  void use_dram(const DramJob& job, uint32_t sectors);
  void send_evicted(const Outgoing& evicted);
  void keep_read_page(const Transaction& transaction);
  void retry_blocked();
  // What a slot has to write to flash: its dirty sectors, and with them those flash has anyway.
  PagePart to_write_back(const DataCache::Slot& slot) const;

  Shared& shared_;
  const Parameters& parameters_;
  const Quirks quirks_;
  const Geometry& geometry_;
  const Timing& timing_;
  const std::vector<Domain>& domains_;
  Clock& clock_;
  Counters& counters_;
  Pool<RequestState>& requests_;
  Pool<Transaction>& transactions_;
  PageTable& pages_;
  PendingPrograms& pending_;
  UndoLog& undo_log_;
  HostLink& link_;
  Mapper& mapper_;
  Flushes& flushes_;
  Scheduler& scheduler_;

  DataCache cache_;
  Server<DramJob> dram_;
  Fifo blocked_;  // writes that wait for the cache
  uint32_t write_period_ = 1;
  Nanos next_period_ = 0;
  uint32_t write_back_sectors_ = 0;
  const uint32_t write_back_sectors_max_;
};

}  // namespace cairn::flash
