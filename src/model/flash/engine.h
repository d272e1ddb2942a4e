// SPDX-License-Identifier: Apache-2.0
// The drive's controller and flash as one event loop. Each engine_*.cc holds one station of a
// request's way: front (host queues) -> cache -> mapping -> schedule -> bus -> back. collect is the
// garbage collector; power is what flushes and power cuts are about.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "model/flash/barriers.h"
#include "model/flash/blocks.h"
#include "model/flash/counters.h"
#include "model/flash/data_cache.h"
#include "model/flash/event_queue.h"
#include "model/flash/geometry.h"
#include "model/flash/mrg32k3a.h"
#include "model/flash/page_table.h"
#include "model/flash/timing.h"
#include "model/flash/transaction.h"
#include "model/flash/undo_log.h"

namespace cairn::flash {

// Told of each completion; may submit further requests at once.
class CompletionSink {
 public:
  virtual void completed(const Completion& completion) = 0;

 protected:
  ~CompletionSink() = default;
};

// Sectors of one page, one bit each.
struct PageSectors {
  uint32_t lpa = 0;
  uint64_t sectors = 0;
};

class Engine {
 public:
  // `parameters` passed check().
  explicit Engine(const Parameters& parameters);

  Nanos now() const { return now_; }
  Nanos next_event() const;
  void advance(Nanos until, CompletionSink& sink);
  void submit(const Request& request, Nanos now);
  // Power fails, and comes back at once; not in mqsim mode. The model was advanced to `now`.
  // Requests in the drive are never completed. A drive whose cache is protected finishes what it
  // has to do on its capacitors, which takes model time, and loses nothing. Otherwise each page is
  // what was last programmed of it; told are the sectors, by page, whose last write or trim is
  // gone. The mapping is recovered from the flash pages, but the mapping cache is cold; how long
  // recovery takes is not modelled.
  std::vector<PageSectors> power_loss(Nanos now);
  // Puts the mapping entry of a written page into the cache. Preconditioning only.
  void warm_mapping(uint32_t lpa, uint32_t stream) {
    if (mapping_cache_.find(lpa) != kNone || mapping_cache_.full()) return;
    mapping_cache_.insert(lpa, translation_page_of(lpa, stream), false);
  }

  const Parameters& parameters() const { return parameters_; }
  const Geometry& geometry() const { return geometry_; }
  const std::vector<Domain>& domains() const { return domains_; }
  const Counters& counters() const { return counters_; }
  PageTable& pages() { return pages_; }
  Blocks& blocks() { return blocks_; }
  const Blocks& blocks() const { return blocks_; }
  // By translation page: its flash page plus one, 0 while it is in DRAM alone.
  const Zeroed<uint32_t>& translation_pages() const { return translation_ppa_plus_one_; }
  MappingCache& mapping_cache() { return mapping_cache_; }
  DataCache& cache() { return cache_; }
  const DataCache& cache() const { return cache_; }
  uint32_t gc_start_blocks() const { return gc_start_blocks_; }
  uint32_t rga_choices() const { return rga_choices_; }
  uint64_t in_flight() const {
    return counters_.requests_submitted - counters_.requests_completed - counters_.requests_cut;
  }
  // Whether a power cut would lose what is in the cache.
  bool has_volatile_cache() const { return !parameters_.cache_protected; }
  Nanos channel_busy(uint32_t channel) const { return channels_[channel].busy_time; }
  Nanos die_busy(uint32_t die) const {
    const Die& d = dies_[die];
    return d.busy_time + (d.busy ? now_ - d.busy_since : 0);
  }
  size_t table_bytes() const;
  size_t pool_bytes() const;

 private:
  // --- parts ---
  enum class Message : uint8_t {
    kDoorbell,
    kCompletionDoorbell,
    kFetchEntry,
    kEntry,
    kFetchData,
    kWriteData,
    kReadData,
    kCompletion,
  };
  struct LinkJob {
    Message message = Message::kDoorbell;
    uint32_t request = kNone;  // of a doorbell: the stream
  };
  enum class DramUse : uint8_t { kUser, kEviction, kFill };
  struct DramJob {
    DramUse use = DramUse::kUser;
    uint32_t request = kNone;
    uint32_t sectors = 0;
    Fifo evicted;
  };
  struct Stream {
    Fifo waiting;    // in the host: its submission queue is full
    Fifo submitted;  // entries the drive has not fetched
    uint64_t tail = 0;
    uint64_t head_known = 0;  // to the host
    uint64_t head = 0;        // entries that arrived in the drive
    uint64_t visible = 0;     // submitted entries whose doorbell arrived
    uint64_t fetched = 0;
    uint32_t in_drive = 0;
    Fifo blocked;  // writes that wait for the cache
  };

  // Queues of a chip: reads by rank, then programs by rank.
  static constexpr uint32_t kMappingRead = 0;
  static constexpr uint32_t kUserRead = 1;
  static constexpr uint32_t kMappingProgram = kUserRead + kPriorityClasses;
  static constexpr uint32_t kUserProgram = kMappingProgram + 1;
  static constexpr uint32_t kCollectorProgram = kUserProgram + kPriorityClasses;
  static constexpr uint32_t kQueues = kCollectorProgram + 1;
  static constexpr uint32_t kCollectorReads = kQueues;  // not a queue: the collections
  static constexpr uint32_t kNoQueue = kQueues + 1;

  struct Ends {
    uint32_t head = kNone;
    uint32_t tail = kNone;
  };
  struct Turn {
    uint8_t last = 0;
    int8_t weight = 4;
  };
  struct Chip {
    std::array<uint64_t, kQueues> queued{};  // planes of the chip with something in the queue
    Fifo collections;                        // victims, in order
    uint32_t collector_reads = 0;            // pages that victims still have to read
    uint32_t erases = 0;                     // victims that will be erased
    uint32_t commands = 0;                   // dies at work
    uint32_t die_turn = 0;
    Turn read_turn;
    Turn program_turn;
  };
  struct Command {
    Kind kind = Kind::kRead;
    uint32_t count = 0;
    std::array<uint32_t, 8> transactions{};
  };
  struct Die {
    bool busy = false;
    bool executing = false;
    bool has_suspended = false;
    uint8_t reads_since_suspension = 0;
    Command active;
    Command suspended;
    Nanos remaining = 0;
    Nanos finish = 0;
    uint64_t finish_order = 0;
    Nanos busy_since = 0;
    Nanos busy_time = 0;
  };
  struct Channel {
    bool busy = false;
    bool data_out = false;
    uint32_t die = 0;
    uint32_t transaction = kNone;
    uint32_t turn = 0;
    Fifo copybacks;  // programs whose data is in their plane
    Fifo mapping_data;
    Fifo user_data;
    Fifo collector_data;
    Nanos busy_time = 0;
  };
  // Requests for one mapping entry that is on its way.
  struct Waiter {
    uint32_t next = kNone;
    uint32_t lpa = 0;
    Fifo reads;
    Fifo programs;
  };

  // --- front: the host's queues and the link (engine_front.cc) ---
  void ring(uint32_t request);
  void fetch(uint32_t stream);
  void begin(uint32_t request);
  void delivered_to_drive(const LinkJob& job);
  void delivered_to_host(const LinkJob& job, CompletionSink& sink);
  void finish_if_done(uint32_t request);
  void serviced_request(uint32_t request);
  void to_drive(Message message, uint32_t about, Nanos duration);
  void to_host(Message message, uint32_t about, Nanos duration);

  // --- cache (engine_cache.cc) ---
  // The next page of a request: its record, sectors and bytes.
  struct Cut {
    uint32_t lpa;
    uint64_t sectors;
    uint32_t count;
    uint64_t at_hand = 0;
  };
  void start_request(uint32_t request);
  void start_read(uint32_t request);
  void start_write(uint32_t request);
  void trim(uint32_t request);
  void to_cache(uint32_t request);
  bool make_room_in_cache(Fifo& evicted, uint32_t& sectors);
  void dram_done(const DramJob& job);
  void use_dram(const DramJob& job, uint32_t sectors);
  void user_read_done(uint32_t transaction);
  void program_done(uint32_t transaction);
  void keep_read_page(const Transaction& transaction);
  void retry_blocked();
  // What a slot has to write to flash: its dirty sectors, and with them those flash has anyway.
  Cut to_write_back(const DataCache::Slot& slot) const;
  void drop_if_empty(uint32_t lpa);
  Cut cut(RequestState& request);
  uint32_t new_transaction(Kind kind, Source source, const Cut& cut, uint32_t stream);

  // --- power (engine_power.cc) ---
  void flush(uint32_t request);
  void write_back_dirty();
  void persist_trims();
  void translation_page_programmed(uint32_t page);
  void finish_flushes();
  void supersede(uint32_t lpa, uint64_t sectors, Nanos version);
  void forget_superseded();
  uint64_t still_wanted(const Transaction& transaction) const;
  void note_undo(const Undo& undo) {
    if (has_volatile_cache()) keep_undo(undo);
  }
  void keep_undo(const Undo& undo);
  // A program has ended.
  void on_flash(uint32_t ppa) {
    if (has_volatile_cache()) drop_undo(ppa);
  }
  void drop_undo(uint32_t ppa);
  void unpin(uint32_t block);
  // Adds to `lost` the sectors whose newest contents are gone.
  void undo(const Undo& undo, std::map<uint32_t, uint64_t>& lost);
  void stop_everything();

  // --- mapping (engine_mapping.cc) ---
  void store_mapping_table();
  void dispatch(Fifo transactions);
  bool query(uint32_t transaction);
  bool translate(uint32_t transaction);
  void translate_read(uint32_t transaction);
  void allocate_user_page(uint32_t transaction);
  void submit_translated(uint32_t transaction);
  bool bring_entry(uint32_t lpa, uint32_t stream);
  void make_room_in_mapping_cache();
  void write_back_mapping(uint32_t lpa, uint32_t stream);
  uint32_t allocate_translation_page(uint32_t page, uint32_t stream);
  // A translation page on its way between flash and DRAM.
  struct MappingMove {
    uint32_t page;
    uint32_t ppa;
    uint32_t stream;
    uint32_t bytes;
  };
  void add_mapping_to_batch(Kind kind, const MappingMove& move);
  void read_translation_page(uint32_t page, uint32_t stream, uint32_t bytes);
  void mapping_read_done(uint32_t transaction);
  void mark_dirty(uint32_t lpa);
  uint32_t translation_page_of(uint32_t lpa, uint32_t stream) const;
  uint32_t stream_of(uint32_t lpa) const;
  uint32_t choose_plane(uint32_t lpa, uint32_t stream);
  void hold_back(uint32_t transaction);  // its page is being moved
  void release_held(uint32_t lpa);
  void retry_overfull(uint32_t plane);
  bool count_query(const Transaction& transaction, bool hit);

  // --- collector (engine_collect.cc) ---
  void check_collection(uint32_t plane);
  uint32_t choose_victim(uint32_t plane);
  uint32_t choose_greedy(uint32_t plane);
  uint32_t choose_among_random(uint32_t plane);
  uint32_t choose_random(uint32_t plane, uint32_t least_invalid, bool full_only);
  void collect(uint32_t block, bool wear);
  void start_collection(uint32_t collection);
  void collector_read_done(uint32_t transaction);
  uint32_t move_page(uint32_t transaction);
  void copy_back(uint32_t die);
  void collector_program_done(uint32_t transaction);
  void page_moved(uint32_t collection);
  void erase_done(uint32_t transaction);
  void level_wear(uint32_t plane);
  void block_released(uint32_t block);
  bool writes_must_wait(uint32_t plane) const { return blocks_.free_blocks(plane) < stop_blocks_; }
  bool collector_urgent(uint32_t chip) const;

  // --- schedule (engine_schedule.cc) ---
  void open_batch() { ++open_batches_; }
  void add_to_batch(uint32_t transaction) { batch_.push_back(transaction); }
  void close_batch();
  void enqueue(uint32_t transaction);
  // The plane's channel looks for work when the batch is closed, or at once when none is open.
  void wake_later(uint32_t plane);
  void mark_woken(uint32_t plane) {
    const uint32_t channel = geometry_.channel_of_chip(geometry_.chip_of_plane(plane));
    woken_[channel / 64] |= uint64_t{1} << (channel % 64);
  }
  void wake(uint32_t channel);
  void serve_chip(uint32_t chip);
  bool serve_reads_of_chip(uint32_t chip);
  bool serve_programs_of_chip(uint32_t chip);
  void serve_die(uint32_t chip, uint32_t die);
  bool serve_collector(uint32_t chip, uint64_t planes);
  bool issue(uint32_t chip, uint32_t queue, uint32_t second, uint64_t planes, bool suspend);
  uint32_t next_class(uint32_t chip, uint32_t first_queue, Turn& turn, uint64_t planes);
  void take_matching(uint32_t chip, uint32_t queue, uint64_t planes, Command& command,
                     uint64_t& taken, uint32_t& page);
  void take_collector_reads(uint32_t chip, uint64_t planes, Command& command, uint64_t& taken,
                            uint32_t& page);
  bool erase(uint32_t chip, uint64_t planes);
  uint32_t take_collector_page(uint32_t chip, uint32_t collection, uint32_t page);
  uint32_t first_unread(uint32_t collection);
  uint32_t first_reading(uint32_t chip, uint64_t planes) const;
  bool is_ready(const Transaction& transaction) const { return transaction.update_read == kNone; }
  void remove_from_queue(uint32_t chip, uint32_t queue, uint32_t transaction);
  uint32_t front_of(uint32_t chip, uint32_t queue, uint64_t planes) const;
  uint64_t planes_of_die(uint32_t die) const;
  bool worth_suspending(const Die& die) const;
  bool reads_waiting(uint32_t chip, uint64_t planes) const;
  bool has_work(uint32_t chip) const;

  // --- bus and dies (engine_bus.cc) ---
  void send_command(const Command& command, bool suspend);
  void transfer_done(uint32_t channel);
  void die_done(uint32_t die);
  void start_data_out(uint32_t channel, uint32_t transaction);
  void start_copyback(uint32_t channel, uint32_t transaction);
  void bus_free(uint32_t channel);
  void serviced(uint32_t transaction);
  // The collector's reads then travel alone, and their data stays in the plane.
  bool is_copyback(const Command& command) const {
    return parameters_.copyback &&
           transactions_[command.transactions[0]].source == Source::kCollector;
  }
  void release_die(uint32_t die);
  void execute(uint32_t die, Nanos duration);
  void resume(uint32_t die);
  // What the heap's events are about: a die, a command in the controller, else a channel.
  static constexpr uint32_t kDieEvent = 1U << 31;
  static constexpr uint32_t kCommandEvent = 1U << 30;

  Ends& ends(uint32_t queue, uint32_t plane) {
    return queues_[size_t{queue} * geometry_.planes() + plane];
  }
  const Ends& ends(uint32_t queue, uint32_t plane) const {
    return queues_[size_t{queue} * geometry_.planes() + plane];
  }

  Parameters parameters_;
  bool mqsim_;
  Geometry geometry_;
  Timing timing_;
  Counters counters_;
  Rng rng_;
  Mrg32k3a reference_rng_;
  uint64_t draw(uint64_t bound) {
    return mqsim_ ? reference_rng_.between(0, bound - 1) : rng_.below(bound);
  }
  uint32_t mapping_entry_bytes_;      // in a translation page
  uint32_t entries_per_translation_;  // logical pages per translation page
  std::vector<Domain> domains_;
  uint32_t gc_start_blocks_;
  uint32_t gc_hard_blocks_;
  uint32_t stop_blocks_;
  uint32_t victims_per_plane_;
  uint32_t rga_choices_;
  uint32_t write_back_sectors_max_;

  Nanos now_ = 0;
  uint64_t order_ = 0;
  Server<LinkJob> down_;
  Server<LinkJob> up_;
  Server<DramJob> dram_;
  EventHeap flash_;

  Pool<RequestState> requests_;
  Pool<Transaction> transactions_;
  Pool<Waiter> waiters_;
  Pool<Collection> collections_;
  std::vector<Stream> streams_;

  PageTable pages_;
  Blocks blocks_;
  MappingCache mapping_cache_;
  DataCache cache_;
  // By translation page: where it is, who waits for it, whether it is still in memory.
  Zeroed<uint32_t> translation_ppa_plus_one_;
  struct Arrival {
    uint32_t first_plus_one;
    uint32_t last_plus_one;
    bool expected;
    bool departing;
  };
  Zeroed<Arrival> arrivals_;
  // By plane: programs that wait for free blocks. Those that may go anywhere wait in one list.
  std::vector<Fifo> overfull_;
  Fifo& overfull(uint32_t plane) { return overfull_[parameters_.dynamic_spread ? 0 : plane]; }
  Fifo held_;  // transactions on pages that are being moved

  // Programs of the user's data, and who waits for them.
  Barriers barriers_;
  Nanos version_ = 0;      // of data given to the drive
  uint32_t unplaced_ = 0;  // programs without a flash page yet
  struct Flush {
    uint32_t request;
    uint32_t epoch;
    UndoLog::Order trims;  // those before
  };
  std::deque<Flush> flushes_;
  // Sectors that were trimmed, or written durably, while older data of them may be on its way: by
  // page, until that has arrived.
  struct Superseded {
    Nanos version;
    uint64_t sectors;
  };
  std::unordered_multimap<uint32_t, Superseded> superseded_;
  struct Expiry {
    uint32_t epoch;
    uint32_t lpa;
    Nanos version;
  };
  std::deque<Expiry> expiries_;
  UndoLog undo_log_;  // empty while the cache is protected

  uint32_t write_period_ = 1;
  Nanos next_period_ = 0;
  uint32_t write_back_sectors_ = 0;

  std::vector<Ends> queues_;
  std::vector<Chip> chips_;
  std::vector<Die> dies_;
  std::vector<Channel> channels_;
  std::vector<uint32_t> batch_;
  std::vector<uint64_t> woken_;  // channels of a batch, one bit each
  uint32_t open_batches_ = 0;
  uint32_t plane_turn_ = 0;
  std::vector<uint32_t> plane_load_;  // programs queued, for the dynamic spread
};

}  // namespace cairn::flash
