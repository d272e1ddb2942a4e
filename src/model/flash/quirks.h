// SPDX-License-Identifier: Apache-2.0
// Where the MQSim reference does other than the hardware it models: each difference by its name.
#pragma once

#include "model/flash/parameters.h"

namespace cairn::flash {

// A drive has all of them or none (Parameters::mqsim). docs/flash.md says which shape its numbers.
class Quirks {
 public:
  explicit Quirks(const Parameters& parameters) : mqsim_(parameters.mqsim) {}

  // --- host link and requests ---
  bool fetches_large_entries() const { return mqsim_; }
  // A request that reaches the end of the space wraps around one sector early, and may cross it.
  bool wraps_one_sector_early() const { return mqsim_; }

  // --- data cache ---
  // Data is ordered by the time at which it came, not by a version of its own.
  bool orders_data_by_time() const { return mqsim_; }
  bool charges_every_second_dram_row() const { return mqsim_; }
  // A page that is written back loses its other dirty sectors.
  bool forgets_other_dirty_sectors() const { return mqsim_; }
  // Sectors are written back that nobody ever wrote.
  bool writes_back_clean_sectors() const { return mqsim_; }
  bool marks_read_pages_dirty() const { return mqsim_; }
  // A cache without a dirty page makes a write wait, although nobody would ever make room.
  bool waits_for_room_forever() const { return mqsim_; }
  // Older data that is still on its way wins over a trim.
  bool lets_older_data_win() const { return mqsim_; }

  // --- mapping ---
  // The programs that stored the empty mapping table never end: their blocks are never collected.
  bool keeps_first_programs_open() const { return mqsim_; }
  // A read of a page never written gives it a place, and counts a program that never ends.
  bool maps_unwritten_pages() const { return mqsim_; }
  // Looking an entry up in order to write it back counts as using it.
  bool touches_written_back_entries() const { return mqsim_; }
  // Programs of translation pages are queued and never issued.
  bool drops_mapping_programs() const { return mqsim_; }
  // Whoever meets a page that the collector moves is forgotten.
  bool loses_requests_on_moved_pages() const { return mqsim_; }
  // A program on another channel is not told that its update read has ended.
  bool forgets_waiting_updates() const { return mqsim_; }
  // Writes that wait for free blocks do not start a collection.
  bool waits_without_collecting() const { return mqsim_; }

  // --- collector ---
  // Up to ten victims of a plane at once, and as many blocks kept free.
  bool collects_ten_at_once() const { return mqsim_; }
  // When the policy proposes a block without garbage, none is collected.
  bool gives_up_without_garbage() const { return mqsim_; }
  // FIFO takes the oldest block and greedy starts from block 0, safe or not.
  bool takes_unsafe_victims() const { return mqsim_; }
  // Random choices include blocks that still have free pages, or no garbage.
  bool draws_useless_victims() const { return mqsim_; }
  // Random choices come from a generator and a seed of its own.
  bool draws_by_own_generator() const { return mqsim_; }
  // All pages of a victim are locked from when it is chosen, not each while it is moved.
  bool locks_whole_victims() const { return mqsim_; }
  // The next victim is looked for only while writes have to wait.
  bool collects_on_only_when_full() const { return mqsim_; }
  // Wear is levelled by the numbers of blocks, and a block of another plane is marked.
  bool levels_wear_by_number() const { return mqsim_; }

  // --- scheduler and bus ---
  // A chip has one command at a time, though its dies could work side by side.
  bool has_one_command_per_chip() const { return mqsim_; }
  // A queue whose head cannot go yet still takes the chip's turn, and its page number is sought.
  bool stops_at_blocked_head() const { return mqsim_; }
  // Erases go to the die of the chip's first victim, ready or not.
  bool erases_die_of_first_victim() const { return mqsim_; }
  // The lowest priority class misses a part of its round.
  bool cuts_rounds_short() const { return mqsim_; }
  bool rounds_bus_cycles_down() const { return mqsim_; }

  // --- power ---
  bool has_no_power_cut() const { return mqsim_; }

  // --- preconditioning ---
  // Blocks are filled in the order of how full they shall be, and parts of them are dropped.
  bool fills_fullest_first() const { return mqsim_; }
  bool fills_one_sector() const { return mqsim_; }
  // How full blocks are is approximated also where there is an exact answer.
  bool approximates_steady_states() const { return mqsim_; }

 private:
  bool mqsim_;
};

}  // namespace cairn::flash
