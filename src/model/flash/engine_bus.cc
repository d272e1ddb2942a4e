// SPDX-License-Identifier: Apache-2.0
// Channels carry commands and data; dies read, program and erase.
#include "base/check.h"
#include "model/flash/engine.h"

namespace cairn::flash {

void Engine::send_command(const Command& command, bool suspend) {
  const Transaction& first = transactions_[command.transactions[0]];
  const uint32_t index = geometry_.die_of_plane(first.plane);
  const uint32_t chip = geometry_.chip_of_die(index);
  Die& die = dies_[index];
  Channel& channel = channels_[geometry_.channel_of_chip(chip)];
  Nanos duration = 0;
  if (suspend) {
    ++(die.active.kind == Kind::kProgram ? counters_.program_suspensions
                                         : counters_.erase_suspensions);
    duration += timing_.suspend_command();
    die.suspended = die.active;
    die.remaining = die.finish - now_;
    die.has_suspended = true;
    die.executing = false;
    die.reads_since_suspension = 0;
  } else {
    CHECK(!die.busy, "a command goes to a free die");
    die.busy = true;
    die.busy_since = now_;
    ++chips_[chip].commands;
  }
  die.active = command;
  const bool one = command.count == 1;
  switch (command.kind) {
    case Kind::kRead:
      ++(one ? counters_.read_commands : counters_.multiplane_read_commands);
      duration += timing_.read_command(command.count);
      break;
    case Kind::kProgram:
      ++(one ? counters_.program_commands : counters_.multiplane_program_commands);
      duration += timing_.program_command(command.count);
      for (uint32_t i = 0; i < command.count; ++i) {
        duration += timing_.bus_data(transactions_[command.transactions[i]].bytes);
      }
      break;
    case Kind::kErase:
      ++(one ? counters_.erase_commands : counters_.multiplane_erase_commands);
      duration += timing_.erase_command(command.count);
      break;
  }
  channel.busy = true;
  channel.data_out = false;
  channel.die = index;
  channel.busy_time += duration;
  flash_.push({now_ + duration, order_++}, geometry_.channel_of_chip(chip));
}

void Engine::execute(uint32_t index, Nanos duration) {
  Die& die = dies_[index];
  die.executing = true;
  die.finish = now_ + duration;
  die.finish_order = order_++;
  flash_.push({die.finish, die.finish_order}, index | kDieEvent);
}

void Engine::transfer_done(uint32_t index) {
  Channel& channel = channels_[index];
  const uint32_t die_index = channel.die;
  Die& die = dies_[die_index];
  if (!channel.data_out) {
    const Transaction& first = transactions_[die.active.transactions[0]];
    Nanos duration = 0;
    switch (die.active.kind) {
      case Kind::kRead:
        duration = timing_.read_cell(first.page);
        // The die needs a while to put a suspended command aside.
        if (die.has_suspended && die.reads_since_suspension == 0) {
          duration += die.suspended.kind == Kind::kProgram ? parameters_.suspend_program_ns
                                                           : parameters_.suspend_erase_ns;
          die.reads_since_suspension = 1;
        }
        break;
      case Kind::kProgram:
        duration = timing_.program_cell(first.page);
        break;
      case Kind::kErase:
        duration = timing_.erase_cell();
        break;
    }
    execute(die_index, duration);
    channel.busy = false;
    bus_free(index);
    return;
  }
  const uint32_t transaction = channel.transaction;
  serviced(transaction);
  transactions_.give_back(transaction);
  if (--die.active.count == 0) release_die(die_index);
  channel.busy = false;
  bus_free(index);
}

void Engine::die_done(uint32_t index) {
  Die& die = dies_[index];
  const uint32_t channel_index = geometry_.channel_of_chip(geometry_.chip_of_die(index));
  Channel& channel = channels_[channel_index];
  die.executing = false;
  if (die.active.kind == Kind::kRead) {
    if (is_copyback(die.active)) return copy_back(index);
    const Source source = transactions_[die.active.transactions[0]].source;
    for (uint32_t i = 0; i < die.active.count; ++i) {
      const uint32_t transaction = die.active.transactions[i];
      if (!channel.busy) {
        start_data_out(channel_index, transaction);
        continue;
      }
      Fifo& waiting = source == Source::kMapping     ? channel.mapping_data
                      : source == Source::kCollector ? channel.collector_data
                                                     : channel.user_data;
      waiting.push(transactions_, transaction);
    }
    return;  // the channel carries the data now, or will
  }
  for (uint32_t i = 0; i < die.active.count; ++i) {
    const uint32_t transaction = die.active.transactions[i];
    serviced(transaction);
    transactions_.give_back(transaction);
  }
  release_die(index);
  if (!channel.busy) wake(channel_index);
}

void Engine::release_die(uint32_t index) {
  Die& die = dies_[index];
  die.busy = false;
  die.busy_time += now_ - die.busy_since;
  --chips_[geometry_.chip_of_die(index)].commands;
}

// A suspended command goes on where it was; sending "resume" takes no time worth counting.
void Engine::resume(uint32_t index) {
  Die& die = dies_[index];
  die.has_suspended = false;
  die.active = die.suspended;
  die.busy = true;
  die.busy_since = now_;
  ++chips_[geometry_.chip_of_die(index)].commands;
  execute(index, die.remaining);
}

void Engine::start_data_out(uint32_t index, uint32_t transaction) {
  Channel& channel = channels_[index];
  const Transaction& t = transactions_[transaction];
  const Nanos duration = timing_.bus_data(t.bytes);
  channel.busy = true;
  channel.data_out = true;
  channel.die = geometry_.die_of_plane(t.plane);
  channel.transaction = transaction;
  channel.busy_time += duration;
  flash_.push({now_ + duration, order_++}, index);
}

// The plane's register holds the data already.
void Engine::start_copyback(uint32_t index, uint32_t transaction) {
  Channel& channel = channels_[index];
  const Nanos duration = timing_.program_command(1);
  ++counters_.program_commands;
  channel.busy = true;
  channel.data_out = false;
  channel.die = geometry_.die_of_plane(transactions_[transaction].plane);
  channel.busy_time += duration;
  flash_.push({now_ + duration, order_++}, index);
}

// Dies that wait to copy a page back go first; then data that was read goes before new commands:
// mapping, then user, then collector.
void Engine::bus_free(uint32_t index) {
  Channel& channel = channels_[index];
  if (!channel.copybacks.empty()) {
    return start_copyback(index, channel.copybacks.pop(transactions_));
  }
  for (Fifo* waiting : {&channel.mapping_data, &channel.user_data, &channel.collector_data}) {
    if (waiting->empty()) continue;
    start_data_out(index, waiting->pop(transactions_));
    return;
  }
  wake(index);
}

// What a finished transaction means to the parts above.
void Engine::serviced(uint32_t index) {
  const Transaction t = transactions_[index];
  if (t.kind == Kind::kProgram) on_flash(t.ppa);
  if (t.source == Source::kCollector) {
    if (t.kind == Kind::kRead) return collector_read_done(index);
    if (t.kind == Kind::kProgram) return collector_program_done(index);
    return erase_done(index);
  }
  if (t.ppa != kNone) {
    const uint32_t block = geometry_.block_of(t.ppa);
    --(t.kind == Kind::kRead ? blocks_[block].reads : blocks_[block].programs);
    block_released(block);
    // When writes found no victim because every block was being written, this may be the first.
    if (!mqsim_ && !overfull_[t.plane].empty()) check_collection(t.plane);
  }
  if (t.source == Source::kMapping) {
    if (t.kind == Kind::kRead) {
      ++counters_.mapping_pages_read;
      mapping_read_done(index);
    } else {
      ++counters_.mapping_pages_programmed;
      arrivals_[t.lpa].departing = false;
      translation_page_programmed(t.lpa);
    }
    return;
  }
  if (t.kind == Kind::kRead) {
    ++counters_.user_pages_read;
    user_read_done(index);
  } else {
    ++counters_.user_pages_programmed;
    --plane_load_[t.plane];
    program_done(index);
  }
}

}  // namespace cairn::flash
