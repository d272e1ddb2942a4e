// SPDX-License-Identifier: Apache-2.0
#include "model/flash/scheduler.h"

#include <algorithm>
#include <bit>

namespace cairn::flash {

namespace {

constexpr int8_t kWeights[kPriorityClasses] = {0, 4, 2, 1};  // urgent goes before all others
constexpr uint8_t kReadsPerSuspension = 8;

uint64_t low_bits(uint32_t count) {
  return count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

}  // namespace

Scheduler::Scheduler(Shared& shared, Collections& collections, Bus& bus)
    : parameters_(shared.parameters),
      quirks_(shared.quirks),
      geometry_(shared.geometry),
      reserve_(shared.reserve),
      blocks_(shared.blocks),
      clock_(shared.clock),
      transactions_(shared.transactions),
      collections_(collections),
      bus_(bus),
      queues_(geometry_, transactions_),
      chips_(geometry_.chips()),
      chip_turns_(geometry_.channels()),
      woken_((geometry_.channels() + 63) / 64) {}

// What was added since the outermost batch opened is queued as one, so that pages of one request
// can share a multi-plane command.
void Scheduler::close_batch() {
  if (--open_batches_ > 0) return;
  for (const uint32_t index : batch_) {
    queues_.push(index, clock_.order++);
    mark_woken(transactions_[index].plane);
  }
  batch_.clear();
  for (uint32_t word = 0; word < woken_.size(); ++word) {
    while (woken_[word] != 0) {
      const auto bit = static_cast<uint32_t>(std::countr_zero(woken_[word]));
      woken_[word] &= woken_[word] - 1;
      const uint32_t channel = word * 64 + bit;
      if (!bus_.is_busy(channel)) wake(channel);
    }
  }
}

void Scheduler::wake_later(uint32_t plane) {
  open_batch();
  mark_woken(plane);
  close_batch();
}

// Chips take turns; the first that can do something gets the bus.
void Scheduler::wake(uint32_t index) {
  uint32_t& turn = chip_turns_[index];
  const uint32_t first = index * geometry_.chips_per_channel();
  for (uint32_t i = 0; i < geometry_.chips_per_channel() && !bus_.is_busy(index); ++i) {
    const uint32_t chip = first + turn;
    if (++turn == geometry_.chips_per_channel()) turn = 0;
    if (quirks_.has_one_command_per_chip() && bus_.commands(chip) > 0) continue;
    const bool has_work = collections_.erases(chip) > 0 || queues_.has_any(chip);
    if (has_work || bus_.has_suspended(chip)) serve_chip(chip);
  }
}

bool Scheduler::collector_urgent(uint32_t chip) const {
  if (!parameters_.gc_preemptible) return true;
  const uint32_t first = chip * geometry_.planes_per_chip();
  for (uint32_t plane = first; plane < first + geometry_.planes_per_chip(); ++plane) {
    if (blocks_.free_blocks(plane) < reserve_.urgent) return true;
  }
  return false;
}

uint64_t Scheduler::planes_of_chip() const { return low_bits(geometry_.planes_per_chip()); }

uint64_t Scheduler::planes_of_die(uint32_t die) const {
  const uint32_t local = die % geometry_.dies_per_chip();
  return low_bits(geometry_.planes_per_die()) << (local * geometry_.planes_per_die());
}

void Scheduler::serve_chip(uint32_t chip) {
  if (quirks_.has_one_command_per_chip()) {
    // Reads, else programs, else erases.
    if (serve_reads_of_chip(chip)) return;
    if (serve_programs_of_chip(chip)) return;
    erase(chip, planes_of_chip());
    return;
  }
  Chip& c = chips_[chip];
  const uint32_t channel = geometry_.channel_of_chip(chip);
  for (uint32_t i = 0; i < geometry_.dies_per_chip() && !bus_.is_busy(channel); ++i) {
    const uint32_t die = chip * geometry_.dies_per_chip() + c.die_turn;
    if (++c.die_turn == geometry_.dies_per_chip()) c.die_turn = 0;
    serve_die(chip, die);
  }
}

bool Scheduler::serve_reads_of_chip(uint32_t chip) {
  const uint64_t all = planes_of_chip();
  const bool collects = collections_.reads(chip) > 0;
  const bool urgent = collector_urgent(chip);
  if (queues_.planes(chip, kMappingRead) != 0) {
    const uint32_t second = urgent && collects ? kCollectorReads : next_user_read(chip, all);
    return issue(chip, kMappingRead, second, all, false);
  }
  if (urgent) {
    if (collects) return issue(chip, kCollectorReads, next_user_read(chip, all), all, false);
    // While a victim is being moved, its chip reads nothing for the user.
    if (queues_.planes(chip, kCollectorProgram) != 0 || collections_.erases(chip) > 0) return false;
    const uint32_t queue = next_user_read(chip, all);
    return queue != kNoQueue && issue(chip, queue, kNoQueue, all, false);
  }
  const uint32_t queue = next_user_read(chip, all);
  if (queue != kNoQueue) {
    return issue(chip, queue, collects ? kCollectorReads : kNoQueue, all, false);
  }
  if (next_user_program(chip, all) != kNoQueue) return false;
  return collects && issue(chip, kCollectorReads, kNoQueue, all, false);
}

bool Scheduler::serve_programs_of_chip(uint32_t chip) {
  const uint64_t all = planes_of_chip();
  const bool collector = queues_.planes(chip, kCollectorProgram) != 0;
  if (collector_urgent(chip)) {
    if (collector) {
      return issue(chip, kCollectorProgram, next_user_program(chip, all), all, false);
    }
    if (collections_.erases(chip) > 0) return false;
    const uint32_t queue = next_user_program(chip, all);
    return queue != kNoQueue && issue(chip, queue, kNoQueue, all, false);
  }
  const uint32_t queue = next_user_program(chip, all);
  if (queue != kNoQueue) {
    return issue(chip, queue, collector ? kCollectorProgram : kNoQueue, all, false);
  }
  return collector && issue(chip, kCollectorProgram, kNoQueue, all, false);
}

void Scheduler::serve_die(uint32_t chip, uint32_t index) {
  const Bus::Die& die = bus_.die(index);
  const uint64_t planes = planes_of_die(index);
  if (die.busy) {
    if (!bus_.worth_suspending(index) || !queues_.has_reads(chip, planes)) return;
    const bool mapping = (queues_.planes(chip, kMappingRead) & planes) != 0;
    const uint32_t queue = mapping ? kMappingRead : next_user_read(chip, planes);
    issue(chip, queue, kNoQueue, planes, true);
    return;
  }
  if (die.has_suspended) {
    const bool more = die.reads_since_suspension < kReadsPerSuspension;
    if (!more || !queues_.has_reads(chip, planes)) return bus_.resume(index);
    bus_.delay_suspended(index);
  }
  if ((queues_.planes(chip, kMappingRead) & planes) != 0) {
    issue(chip, kMappingRead, next_user_read(chip, planes), planes, false);
    return;
  }
  const bool erases = collections_.erases(chip) > 0;
  if (erases && collector_urgent(chip) && serve_collector(chip, planes)) return;
  if (const uint32_t queue = next_user_read(chip, planes); queue != kNoQueue) {
    const uint32_t second = collections_.reads(chip) > 0 ? kCollectorReads : kNoQueue;
    issue(chip, queue, second, planes, false);
    return;
  }
  if ((queues_.planes(chip, kMappingProgram) & planes) != 0) {
    if (issue(chip, kMappingProgram, kNoQueue, planes, false)) return;
  }
  const uint32_t queue = next_user_program(chip, planes);
  if (queue != kNoQueue && issue(chip, queue, kCollectorProgram, planes, false)) return;
  if (collections_.erases(chip) > 0) serve_collector(chip, planes);
}

bool Scheduler::serve_collector(uint32_t chip, uint64_t planes) {
  if (collections_.first_reading(chip, planes) != kNone) {
    return issue(chip, kCollectorReads, kNoQueue, planes, false);
  }
  if ((queues_.planes(chip, kCollectorProgram) & planes) != 0) {
    if (issue(chip, kCollectorProgram, kNoQueue, planes, false)) return true;
  }
  return erase(chip, planes);
}

// Urgent first; the other classes by weight, each visited in turn.
uint32_t Scheduler::next_class(uint32_t chip, uint32_t first_queue, Turn& turn, uint64_t planes) {
  if ((queues_.planes(chip, first_queue) & planes) != 0) return first_queue;
  uint64_t any = 0;
  for (uint32_t rank = 1; rank < kPriorityClasses; ++rank) {
    any |= queues_.planes(chip, first_queue + rank);
  }
  if ((any & planes) == 0) return kNoQueue;
  // A whole cycle of weights, and the rest of the round it began in. Without that the lowest class
  // waits for another event.
  const int rounds = quirks_.cuts_rounds_short() ? kWeights[1] : kWeights[1] + 1;
  for (int tries = 0; tries < rounds;) {
    turn.last = turn.last + 1 < static_cast<int>(kPriorityClasses) ? turn.last + 1 : 1;
    if (turn.last == 1) {
      ++tries;
      turn.weight = turn.weight > 1 ? static_cast<int8_t>(turn.weight - 1) : kWeights[1];
    }
    if (kWeights[turn.last] < turn.weight) continue;
    if ((queues_.planes(chip, first_queue + turn.last) & planes) != 0) {
      return first_queue + turn.last;
    }
  }
  return kNoQueue;
}

// Sends one command made of the head of `queue` and what fits to it: same die, other planes, same
// page number. True when a command was chosen, even if the head could not go yet.
bool Scheduler::issue(uint32_t chip, uint32_t queue, uint32_t second, uint64_t planes,
                      bool suspend) {
  Draft draft;
  uint32_t plane = 0;
  if (queue == kCollectorReads) {
    const uint32_t collection = collections_.first_reading(chip, planes);
    plane = collections_[collection].plane;
    draft.page = collections_.first_unread(collection);
  } else {
    const Transaction& front = transactions_[queues_.front(chip, queue, planes)];
    plane = front.plane;
    draft.page = front.page;
  }
  const uint64_t die_planes = planes_of_die(geometry_.die_of_plane(plane));
  for (const uint32_t source : {queue, second}) {
    if (source == kNoQueue) continue;
    if (source == kCollectorReads && parameters_.copyback && draft.taken != 0) continue;
    if (source == kCollectorReads) {
      take_collector_reads(chip, die_planes, draft);
    } else if (queues_.planes(chip, source) != 0) {
      take_matching(chip, source, die_planes, draft);
    }
  }
  DieCommand& command = draft.command;
  if (command.count == 0) return quirks_.stops_at_blocked_head();
  command.kind = transactions_[command.transactions[0]].kind;
  bus_.send(command, suspend);
  return true;
}

void Scheduler::take_matching(uint32_t chip, uint32_t queue, uint64_t planes, Draft& draft) {
  DieCommand& command = draft.command;
  const uint32_t first = chip * geometry_.planes_per_chip();
  const auto take = [&](uint32_t index) {
    draft.taken |= uint64_t{1} << (transactions_[index].plane - first);
    queues_.remove(chip, queue, index);
    command.transactions[command.count++] = index;
  };
  if (draft.taken == 0) {
    uint32_t best = kNone;
    for (uint64_t rest = queues_.planes(chip, queue) & planes; rest != 0; rest &= rest - 1) {
      uint32_t index = queues_.head(queue, first + static_cast<uint32_t>(std::countr_zero(rest)));
      while (index != kNone && !is_ready(transactions_[index])) index = transactions_[index].next;
      if (index == kNone) continue;
      if (best == kNone || transactions_[index].order < transactions_[best].order) best = index;
    }
    if (best == kNone) return;
    take(best);
    if (!quirks_.stops_at_blocked_head()) draft.page = transactions_[best].page;
  }
  const uint32_t page = draft.page;
  const uint32_t sorted_from = command.count;
  for (uint64_t rest = queues_.planes(chip, queue) & planes & ~draft.taken; rest != 0;
       rest &= rest - 1) {
    uint32_t index = queues_.head(queue, first + static_cast<uint32_t>(std::countr_zero(rest)));
    if (queue == kCollectorProgram) {
      // The pages of this list follow each other, so the right one is this many steps away.
      const uint32_t pages = geometry_.pages();
      uint32_t steps = (page + pages - transactions_[index].page) % pages;
      while (steps > 0 && index != kNone && transactions_[index].page != page) {
        index = transactions_[index].next;
        --steps;
      }
      if (index != kNone && transactions_[index].page != page) index = kNone;
    } else {
      while (index != kNone &&
             (transactions_[index].page != page || !is_ready(transactions_[index]))) {
        index = transactions_[index].next;
      }
    }
    if (index != kNone) take(index);
  }
  std::sort(
      command.transactions.begin() + sorted_from, command.transactions.begin() + command.count,
      [&](uint32_t a, uint32_t b) { return transactions_[a].order < transactions_[b].order; });
}

uint32_t Scheduler::take_collector_page(uint32_t index, uint32_t page) {
  collections_.take_page(index, page);
  const Collection& collection = collections_[index];
  const uint32_t transaction = transactions_.take();
  Transaction& t = transactions_[transaction];
  t.kind = Kind::kRead;
  t.source = Source::kCollector;
  t.plane = collection.plane;
  t.page = page;
  t.ppa = collection.block * geometry_.pages() + page;
  t.bytes = parameters_.page_bytes;
  t.collection = index;
  return transaction;
}

void Scheduler::take_collector_reads(uint32_t chip, uint64_t planes, Draft& draft) {
  const uint32_t first = chip * geometry_.planes_per_chip();
  for (uint32_t i = collections_.first(chip); i != kNone; i = collections_[i].next) {
    const Collection& collection = collections_[i];
    const uint64_t bit = uint64_t{1} << (collection.plane - first);
    if (collection.reads_left == 0 || (bit & planes & ~draft.taken) == 0) continue;
    if (draft.taken == 0) {
      draft.page = collections_.first_unread(i);
    } else if ((collection.unread[draft.page / 64] >> (draft.page % 64) & 1) == 0) {
      continue;
    }
    draft.taken |= bit;
    draft.command.transactions[draft.command.count++] = take_collector_page(i, draft.page);
    if (parameters_.copyback) return;  // its target need not have the same number in another plane
  }
}

// Erases the first victim that has nothing left to move, and others of its die with it.
bool Scheduler::erase(uint32_t chip, uint64_t planes) {
  if (collections_.erases(chip) == 0) return false;
  const uint32_t first = chip * geometry_.planes_per_chip();
  DieCommand command;
  command.kind = Kind::kErase;
  uint64_t taken = 0;
  uint32_t previous = kNone;
  for (uint32_t i = collections_.first(chip); i != kNone;) {
    const Collection& collection = collections_[i];
    const uint32_t next = collection.next;
    const uint64_t bit = uint64_t{1} << (collection.plane - first);
    const bool started = !collection.postponed;
    if (quirks_.erases_die_of_first_victim() && started && taken == 0 &&
        planes == planes_of_chip()) {
      planes = planes_of_die(geometry_.die_of_plane(collection.plane));
    }
    const bool pinned = blocks_[collection.block].pins > 0;
    if (!started || pinned || collection.moves_left > 0 || (bit & planes & ~taken) == 0) {
      previous = i;
      i = next;
      continue;
    }
    if (taken == 0) planes = planes_of_die(geometry_.die_of_plane(collection.plane));
    taken |= bit;
    collections_.leave_line(chip, previous, i);
    const uint32_t transaction = transactions_.take();
    Transaction& t = transactions_[transaction];
    t.kind = Kind::kErase;
    t.source = Source::kCollector;
    t.plane = collection.plane;
    t.collection = i;
    command.transactions[command.count++] = transaction;
    i = next;
  }
  if (command.count == 0) return false;
  bus_.send(command, false);
  return true;
}

void Scheduler::clear() {
  queues_.clear();
  chips_.assign(chips_.size(), Chip{});
  chip_turns_.assign(chip_turns_.size(), 0);
}

}  // namespace cairn::flash
