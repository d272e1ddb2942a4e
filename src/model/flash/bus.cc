// SPDX-License-Identifier: Apache-2.0
#include "model/flash/bus.h"

#include "base/check.h"

namespace cairn::flash {

Bus::Bus(Shared& shared, FlashSink& sink)
    : parameters_(shared.parameters),
      geometry_(shared.geometry),
      timing_(shared.timing),
      clock_(shared.clock),
      events_(shared.events),
      counters_(shared.counters),
      transactions_(shared.transactions),
      sink_(sink),
      dies_(geometry_.dies()),
      channels_(geometry_.channels()),
      chips_(geometry_.chips()) {}

void Bus::send(const DieCommand& command, bool suspend) {
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
    die.remaining = die.finish - clock_.now;
    die.has_suspended = true;
    ++chips_[chip].suspended;
    die.executing = false;
    die.reads_since_suspension = 0;
  } else {
    CHECK(!die.busy, "a command goes to a free die");
    die.busy = true;
    die.busy_since = clock_.now;
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
  events_.push(clock_.in(duration), geometry_.channel_of_chip(chip));
}

void Bus::execute(uint32_t index, Nanos duration) {
  Die& die = dies_[index];
  die.executing = true;
  const Moment end = clock_.in(duration);
  die.finish = end.time;
  die.finish_order = end.order;
  events_.push(end, index | kDieEvent);
}

void Bus::transfer_done(uint32_t index) {
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
    became_free(index);
    return;
  }
  const uint32_t transaction = channel.transaction;
  sink_.serviced(transaction);
  transactions_.give_back(transaction);
  if (--die.active.count == 0) release_die(die_index);
  channel.busy = false;
  became_free(index);
}

void Bus::die_done(uint32_t index) {
  Die& die = dies_[index];
  const uint32_t channel_index = channel_of(index);
  Channel& channel = channels_[channel_index];
  die.executing = false;
  if (die.active.kind == Kind::kRead) {
    if (is_copyback(die.active)) return sink_.page_at_hand(index);
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
    sink_.serviced(transaction);
    transactions_.give_back(transaction);
  }
  release_die(index);
  if (!channel.busy) sink_.channel_free(channel_index);
}

void Bus::release_die(uint32_t index) {
  Die& die = dies_[index];
  die.busy = false;
  die.busy_time += clock_.now - die.busy_since;
  --chips_[geometry_.chip_of_die(index)].commands;
}

// A suspended command goes on where it was; sending "resume" takes no time worth counting.
void Bus::resume(uint32_t index) {
  Die& die = dies_[index];
  die.has_suspended = false;
  die.active = die.suspended;
  die.busy = true;
  die.busy_since = clock_.now;
  Chip& chip = chips_[geometry_.chip_of_die(index)];
  --chip.suspended;
  ++chip.commands;
  execute(index, die.remaining);
}

void Bus::start_data_out(uint32_t index, uint32_t transaction) {
  Channel& channel = channels_[index];
  const Transaction& t = transactions_[transaction];
  const Nanos duration = timing_.bus_data(t.bytes);
  channel.busy = true;
  channel.data_out = true;
  channel.die = geometry_.die_of_plane(t.plane);
  channel.transaction = transaction;
  channel.busy_time += duration;
  events_.push(clock_.in(duration), index);
}

// The plane's register holds the data already.
void Bus::start_copyback(uint32_t index, uint32_t transaction) {
  Channel& channel = channels_[index];
  const Nanos duration = timing_.program_command(1);
  ++counters_.program_commands;
  channel.busy = true;
  channel.data_out = false;
  channel.die = geometry_.die_of_plane(transactions_[transaction].plane);
  channel.busy_time += duration;
  events_.push(clock_.in(duration), index);
}

// Dies that wait to copy a page back go first; then data that was read goes before new commands:
// mapping, then user, then collector.
void Bus::became_free(uint32_t index) {
  Channel& channel = channels_[index];
  if (!channel.copybacks.empty()) {
    return start_copyback(index, channel.copybacks.pop(transactions_));
  }
  for (Fifo* waiting : {&channel.mapping_data, &channel.user_data, &channel.collector_data}) {
    if (waiting->empty()) continue;
    start_data_out(index, waiting->pop(transactions_));
    return;
  }
  sink_.channel_free(index);
}

void Bus::program_copy(uint32_t index, uint32_t transaction) {
  ++counters_.copybacks;
  dies_[index].active = {.kind = Kind::kProgram, .count = 1, .transactions = {transaction}};
  const uint32_t channel = channel_of(index);
  if (channels_[channel].busy) {
    channels_[channel].copybacks.push(transactions_, transaction);
  } else {
    start_copyback(channel, transaction);
  }
}

void Bus::clear() {
  for (uint32_t i = 0; i < dies_.size(); ++i) {
    const Nanos busy = die_busy(i);
    dies_[i] = {};
    dies_[i].busy_time = busy;
  }
  for (Channel& channel : channels_) {
    const Nanos busy = channel.busy_time;
    channel = {};
    channel.busy_time = busy;
  }
  chips_.assign(chips_.size(), Chip{});
}

}  // namespace cairn::flash
