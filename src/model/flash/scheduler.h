// SPDX-License-Identifier: Apache-2.0
// Which transactions go to which chip next.
#pragma once

#include <cstdint>
#include <vector>

#include "model/flash/bus.h"
#include "model/flash/collections.h"
#include "model/flash/flash_queues.h"
#include "model/flash/shared.h"

namespace cairn::flash {

// Channels visit their chips in turn, chips their dies. Reads go before programs before erases;
// mapping before user before collector, which goes first when free blocks run out.
class Scheduler {
 public:
  Scheduler(Shared& shared, Collections& collections, Bus& bus);

  // What is added since the outermost batch was opened is queued as one when that is closed, so
  // that pages of one request can share a command.
  void open_batch() { ++open_batches_; }
  void add_to_batch(uint32_t transaction) { batch_.push_back(transaction); }
  void close_batch();
  // The plane's channel looks for work when the batch is closed, or at once when none is open.
  void wake_later(uint32_t plane);
  // The channel is free: the first of its chips that can do something gets it.
  void wake(uint32_t channel);

  // Power failed: nothing waits.
  void clear();

 private:
  static constexpr uint32_t kMappingRead = FlashQueues::kMappingRead;
  static constexpr uint32_t kUserRead = FlashQueues::kUserRead;
  static constexpr uint32_t kMappingProgram = FlashQueues::kMappingProgram;
  static constexpr uint32_t kUserProgram = FlashQueues::kUserProgram;
  static constexpr uint32_t kCollectorProgram = FlashQueues::kCollectorProgram;
  static constexpr uint32_t kCollectorReads = FlashQueues::kQueues;  // not a queue: collections
  static constexpr uint32_t kNoQueue = kCollectorReads + 1;

  // Where the weighted round of priority classes is.
  struct Turn {
    uint8_t last = 0;
    int8_t weight = 4;
  };
  struct Chip {
    uint32_t die_turn = 0;
    Turn read_turn;
    Turn program_turn;
  };
  // A command that is being put together: the chip's planes that take part, and the page number.
  struct Draft {
    DieCommand command;
    uint64_t taken = 0;
    uint32_t page = 0;
  };

  void mark_woken(uint32_t plane) {
    const uint32_t channel = geometry_.channel_of_chip(geometry_.chip_of_plane(plane));
    woken_[channel / 64] |= uint64_t{1} << (channel % 64);
  }
  void serve_chip(uint32_t chip);
  bool serve_reads_of_chip(uint32_t chip);
  bool serve_programs_of_chip(uint32_t chip);
  void serve_die(uint32_t chip, uint32_t die);
  bool serve_collector(uint32_t chip, uint64_t planes);
  bool issue(uint32_t chip, uint32_t queue, uint32_t second, uint64_t planes, bool suspend);
  void take_matching(uint32_t chip, uint32_t queue, uint64_t planes, Draft& draft);
  void take_collector_reads(uint32_t chip, uint64_t planes, Draft& draft);
  uint32_t take_collector_page(uint32_t collection, uint32_t page);
  bool erase(uint32_t chip, uint64_t planes);
  uint32_t next_class(uint32_t chip, uint32_t first_queue, Turn& turn, uint64_t planes);
  uint32_t next_user_read(uint32_t chip, uint64_t planes) {
    return next_class(chip, kUserRead, chips_[chip].read_turn, planes);
  }
  uint32_t next_user_program(uint32_t chip, uint64_t planes) {
    return next_class(chip, kUserProgram, chips_[chip].program_turn, planes);
  }
  bool is_ready(const Transaction& transaction) const { return transaction.update_read == kNone; }
  // Whether the collector goes before users on this chip.
  bool collector_urgent(uint32_t chip) const;
  uint64_t planes_of_die(uint32_t die) const;
  uint64_t planes_of_chip() const;

  const Parameters& parameters_;
  const Quirks quirks_;
  const Geometry& geometry_;
  const Reserve& reserve_;
  const Blocks& blocks_;
  Clock& clock_;
  Pool<Transaction>& transactions_;
  Collections& collections_;
  Bus& bus_;

  FlashQueues queues_;
  std::vector<Chip> chips_;
  std::vector<uint32_t> chip_turns_;  // by channel
  std::vector<uint32_t> batch_;
  std::vector<uint64_t> woken_;  // channels of a batch, one bit each
  uint32_t open_batches_ = 0;
};

}  // namespace cairn::flash
