// SPDX-License-Identifier: Apache-2.0
// What a modelled drive has done so far.
#pragma once

#include <cstdint>

namespace cairn::flash {

struct Counters {
  // Flash commands; a multi-plane command counts once, apart from the others.
  uint64_t read_commands = 0;
  uint64_t multiplane_read_commands = 0;
  uint64_t program_commands = 0;
  uint64_t multiplane_program_commands = 0;
  uint64_t erase_commands = 0;
  uint64_t multiplane_erase_commands = 0;
  uint64_t program_suspensions = 0;
  uint64_t erase_suspensions = 0;

  // Pages, by who asked.
  uint64_t user_pages_read = 0;
  uint64_t user_pages_programmed = 0;
  uint64_t gc_pages_read = 0;
  uint64_t gc_pages_programmed = 0;
  uint64_t mapping_pages_read = 0;
  uint64_t mapping_pages_programmed = 0;
  uint64_t mapping_reads_wanted = 0;
  uint64_t mapping_writes_wanted = 0;
  uint64_t blocks_erased = 0;

  // Cached mapping table.
  uint64_t mapping_queries = 0;
  uint64_t mapping_read_queries = 0;
  uint64_t mapping_write_queries = 0;
  uint64_t mapping_hits = 0;
  uint64_t mapping_read_hits = 0;
  uint64_t mapping_write_hits = 0;
  uint64_t mapping_read_misses = 0;
  uint64_t mapping_write_misses = 0;
  uint64_t mapping_misses_from_memory = 0;  // misses that needed no flash read

  // Data cache.
  uint64_t cache_read_hits = 0;  // pages of user reads found whole
  uint64_t cache_read_misses = 0;
  uint64_t cache_evictions = 0;  // dirty pages written back to make room

  uint64_t gc_executions = 0;
  uint64_t gc_page_moves = 0;
  uint64_t copybacks = 0;  // pages moved past the bus
  uint64_t wear_executions = 0;
  uint64_t wear_page_moves = 0;

  uint64_t requests_submitted = 0;
  uint64_t requests_completed = 0;
  uint64_t requests_cut = 0;   // in the drive when power failed
  uint64_t requests_lost = 0;  // pages of them; only where the reference loses them too
  uint64_t sectors_read = 0;
  uint64_t sectors_written = 0;
  uint64_t sectors_trimmed = 0;
  uint64_t events = 0;

  // Flash pages programmed per page the cache and the user gave away; 0 before the first.
  double write_amplification() const {
    if (user_pages_programmed == 0) return 0;
    return static_cast<double>(user_pages_programmed + gc_pages_programmed +
                               mapping_pages_programmed) /
           static_cast<double>(user_pages_programmed);
  }
};

}  // namespace cairn::flash
