// SPDX-License-Identifier: Apache-2.0
// Channels carry commands and data; dies read, program and erase.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/flash/shared.h"

namespace cairn::flash {

// Told what the bus and the dies have done.
class FlashSink {
 public:
  // The transaction is done; it is given back afterwards.
  virtual void serviced(uint32_t transaction) = 0;
  // The die holds a page of the collector's in its register, see Bus::program_copy().
  virtual void page_at_hand(uint32_t die) = 0;
  // The channel has nothing to carry.
  virtual void channel_free(uint32_t channel) = 0;

 protected:
  ~FlashSink() = default;
};

// Up to one transaction per plane of a die.
struct DieCommand {
  Kind kind = Kind::kRead;
  uint32_t count = 0;
  std::array<uint32_t, 8> transactions{};
};

class Bus {
 public:
  struct Die {
    bool busy = false;
    bool executing = false;
    bool has_suspended = false;
    uint8_t reads_since_suspension = 0;
    DieCommand active;
    DieCommand suspended;
    Nanos remaining = 0;
    Nanos finish = 0;
    uint64_t finish_order = 0;
    Nanos busy_since = 0;
    Nanos busy_time = 0;
  };

  Bus(Shared& shared, FlashSink& sink);

  bool is_busy(uint32_t channel) const { return channels_[channel].busy; }
  const Die& die(uint32_t index) const { return dies_[index]; }
  // Dies of the chip that are at work.
  uint32_t commands(uint32_t chip) const { return chips_[chip].commands; }
  // Whether a die of the chip has a command that was put aside.
  bool has_suspended(uint32_t chip) const { return chips_[chip].suspended > 0; }
  // Whether the die's command may be put aside for a read, and has enough left for that.
  bool worth_suspending(uint32_t index) const {
    const Die& d = dies_[index];
    if (!d.executing || d.has_suspended) return false;
    const Nanos left = d.finish - clock_.now;
    if (d.active.kind == Kind::kProgram) {
      return parameters_.suspend_program && left >= parameters_.worth_suspending_program_ns;
    }
    return d.active.kind == Kind::kErase && parameters_.suspend_erase &&
           left >= parameters_.worth_suspending_erase_ns;
  }

  // Sends a command over the die's channel, which is free. The die is free, too, or its command is
  // suspended.
  void send(const DieCommand& command, bool suspend);
  // One more read goes before the suspended command of a die goes on.
  void delay_suspended(uint32_t die) { ++dies_[die].reads_since_suspension; }
  // A suspended command goes on where it was; sending "resume" takes no time worth counting.
  void resume(uint32_t die);

  // What the die holds is programmed next, by this transaction, when its channel lets it.
  void program_copy(uint32_t die, uint32_t transaction);
  // The die has no command any more.
  void release_die(uint32_t die);

  // Events of the heap.
  void transfer_done(uint32_t channel);
  void die_event(uint32_t die, uint64_t order) {
    // A suspended command's end is no longer what the die waits for.
    if (dies_[die].executing && dies_[die].finish_order == order) die_done(die);
  }

  Nanos channel_busy(uint32_t channel) const { return channels_[channel].busy_time; }
  Nanos die_busy(uint32_t index) const {
    const Die& d = dies_[index];
    return d.busy_time + (d.busy ? clock_.now - d.busy_since : 0);
  }

  // Power failed: everybody is idle.
  void clear();

 private:
  struct Channel {
    bool busy = false;
    bool data_out = false;
    uint32_t die = 0;
    uint32_t transaction = kNone;
    Fifo copybacks;  // programs whose data is in their plane
    Fifo mapping_data;
    Fifo user_data;
    Fifo collector_data;
    Nanos busy_time = 0;
  };

  struct Chip {
    uint32_t commands = 0;
    uint32_t suspended = 0;
  };

  // The collector's reads then travel alone, and their data stays in the plane.
  bool is_copyback(const DieCommand& command) const {
    return parameters_.copyback &&
           transactions_[command.transactions[0]].source == Source::kCollector;
  }
  uint32_t channel_of(uint32_t die) const {
    return geometry_.channel_of_chip(geometry_.chip_of_die(die));
  }
  void execute(uint32_t die, Nanos duration);
  void die_done(uint32_t die);
  void start_data_out(uint32_t channel, uint32_t transaction);
  void start_copyback(uint32_t channel, uint32_t transaction);
  void became_free(uint32_t channel);

  const Parameters& parameters_;
  const Geometry& geometry_;
  const Timing& timing_;
  Clock& clock_;
  EventHeap& events_;
  Counters& counters_;
  Pool<Transaction>& transactions_;
  FlashSink& sink_;

  std::vector<Die> dies_;
  std::vector<Channel> channels_;
  std::vector<Chip> chips_;
};

}  // namespace cairn::flash
