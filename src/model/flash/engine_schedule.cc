// SPDX-License-Identifier: Apache-2.0
// Which transactions go to which chip next. Transactions wait in lists per queue and plane; a chip
// knows by a bit mask which of its planes have something waiting.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "model/flash/engine.h"

namespace cairn::flash {

namespace {

constexpr int8_t kWeights[kPriorityClasses] = {0, 4, 2, 1};  // urgent goes before all others
constexpr uint8_t kReadsPerSuspension = 8;

uint64_t low_bits(uint32_t count) {
  return count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

}  // namespace

// What was added since the outermost batch opened is queued as one, so that pages of one request
// can share a multi-plane command.
void Engine::close_batch() {
  if (--open_batches_ > 0) return;
  for (const uint32_t index : batch_) {
    enqueue(index);
    const uint32_t chip = geometry_.chip_of_plane(transactions_[index].plane);
    const uint32_t channel = geometry_.channel_of_chip(chip);
    woken_[channel / 64] |= uint64_t{1} << (channel % 64);
  }
  batch_.clear();
  for (uint32_t word = 0; word < woken_.size(); ++word) {
    while (woken_[word] != 0) {
      const auto bit = static_cast<uint32_t>(std::countr_zero(woken_[word]));
      woken_[word] &= woken_[word] - 1;
      const uint32_t channel = word * 64 + bit;
      if (!channels_[channel].busy) wake(channel);
    }
  }
}

// Something there can go on that was not queued just now.
void Engine::wake_channel_of(uint32_t plane) {
  const uint32_t channel = geometry_.channel_of_chip(geometry_.chip_of_plane(plane));
  open_batch();
  woken_[channel / 64] |= uint64_t{1} << (channel % 64);
  close_batch();
}

void Engine::enqueue(uint32_t index) {
  Transaction& t = transactions_[index];
  const auto rank = static_cast<uint32_t>(t.priority);
  uint32_t queue = 0;
  switch (t.source) {
    case Source::kMapping:
      queue = t.kind == Kind::kRead ? kMappingRead : kMappingProgram;
      break;
    case Source::kCollector:
      queue = kCollectorProgram;
      break;
    default:
      queue = (t.kind == Kind::kRead ? kUserRead : kUserProgram) + rank;
      break;
  }
  t.order = order_++;
  Ends& list = ends(queue, t.plane);
  t.next = kNone;
  t.prev = list.tail;
  (list.tail == kNone ? list.head : transactions_[list.tail].next) = index;
  list.tail = index;
  const uint32_t chip = geometry_.chip_of_plane(t.plane);
  chips_[chip].queued[queue] |= uint64_t{1} << (t.plane - chip * geometry_.planes_per_chip());
}

void Engine::remove_from_queue(uint32_t chip, uint32_t queue, uint32_t index) {
  const Transaction& t = transactions_[index];
  Ends& list = ends(queue, t.plane);
  (t.prev == kNone ? list.head : transactions_[t.prev].next) = t.next;
  (t.next == kNone ? list.tail : transactions_[t.next].prev) = t.prev;
  if (list.head == kNone) {
    const uint32_t local = t.plane - chip * geometry_.planes_per_chip();
    chips_[chip].queued[queue] &= ~(uint64_t{1} << local);
  }
}

bool Engine::has_work(uint32_t chip) const {
  const Chip& c = chips_[chip];
  uint64_t any = c.erases;
  for (const uint64_t planes : c.queued) any |= planes;
  return any != 0;
}

// Chips take turns; the first that can do something gets the bus.
void Engine::wake(uint32_t index) {
  Channel& channel = channels_[index];
  const uint32_t first = index * geometry_.chips_per_channel();
  for (uint32_t i = 0; i < geometry_.chips_per_channel() && !channel.busy; ++i) {
    const uint32_t chip = first + channel.turn;
    if (++channel.turn == geometry_.chips_per_channel()) channel.turn = 0;
    if (mqsim_ && chips_[chip].commands > 0) continue;
    if (has_work(chip) || !mqsim_) serve_chip(chip);
  }
}

uint64_t Engine::planes_of_die(uint32_t die) const {
  const uint32_t local = die % geometry_.dies_per_chip();
  return low_bits(geometry_.planes_per_die()) << (local * geometry_.planes_per_die());
}

void Engine::serve_chip(uint32_t chip) {
  if (mqsim_) {
    // One command per chip: reads, else programs, else erases.
    if (serve_reads_of_chip(chip)) return;
    if (serve_programs_of_chip(chip)) return;
    erase(chip, low_bits(geometry_.planes_per_chip()));
    return;
  }
  Chip& c = chips_[chip];
  const uint32_t channel = geometry_.channel_of_chip(chip);
  for (uint32_t i = 0; i < geometry_.dies_per_chip() && !channels_[channel].busy; ++i) {
    const uint32_t die = chip * geometry_.dies_per_chip() + c.die_turn;
    if (++c.die_turn == geometry_.dies_per_chip()) c.die_turn = 0;
    serve_die(chip, die);
  }
}

bool Engine::serve_reads_of_chip(uint32_t chip) {
  Chip& c = chips_[chip];
  const uint64_t all = low_bits(geometry_.planes_per_chip());
  const bool urgent = collector_urgent(chip);
  const auto user = [&] { return next_class(chip, kUserRead, c.read_turn, all); };
  if (c.queued[kMappingRead] != 0) {
    const bool collector = urgent && c.collector_reads > 0;
    return issue(chip, kMappingRead, collector ? kCollectorReads : user(), all, false);
  }
  if (urgent) {
    if (c.collector_reads > 0) return issue(chip, kCollectorReads, user(), all, false);
    // While a victim is being moved, its chip reads nothing for the user.
    if (c.queued[kCollectorProgram] != 0 || c.erases > 0) return false;
    const uint32_t queue = user();
    return queue != kNoQueue && issue(chip, queue, kNoQueue, all, false);
  }
  const uint32_t queue = user();
  if (queue != kNoQueue) {
    return issue(chip, queue, c.collector_reads > 0 ? kCollectorReads : kNoQueue, all, false);
  }
  if (next_class(chip, kUserProgram, c.program_turn, all) != kNoQueue) return false;
  return c.collector_reads > 0 && issue(chip, kCollectorReads, kNoQueue, all, false);
}

bool Engine::serve_programs_of_chip(uint32_t chip) {
  Chip& c = chips_[chip];
  const uint64_t all = low_bits(geometry_.planes_per_chip());
  const bool collector = c.queued[kCollectorProgram] != 0;
  const auto user = [&] { return next_class(chip, kUserProgram, c.program_turn, all); };
  if (collector_urgent(chip)) {
    if (collector) return issue(chip, kCollectorProgram, user(), all, false);
    if (c.erases > 0) return false;
    const uint32_t queue = user();
    return queue != kNoQueue && issue(chip, queue, kNoQueue, all, false);
  }
  const uint32_t queue = user();
  if (queue != kNoQueue) {
    return issue(chip, queue, collector ? kCollectorProgram : kNoQueue, all, false);
  }
  return collector && issue(chip, kCollectorProgram, kNoQueue, all, false);
}

bool Engine::reads_waiting(uint32_t chip, uint64_t planes) const {
  const Chip& c = chips_[chip];
  uint64_t any = c.queued[kMappingRead];
  for (uint32_t rank = 0; rank < kPriorityClasses; ++rank) any |= c.queued[kUserRead + rank];
  return (any & planes) != 0;
}

bool Engine::worth_suspending(const Die& die) const {
  if (!die.executing || die.has_suspended) return false;
  const Nanos left = die.finish - now_;
  if (die.active.kind == Kind::kProgram) {
    return parameters_.suspend_program && left >= parameters_.worth_suspending_program_ns;
  }
  return die.active.kind == Kind::kErase && parameters_.suspend_erase &&
         left >= parameters_.worth_suspending_erase_ns;
}

void Engine::serve_die(uint32_t chip, uint32_t index) {
  Die& die = dies_[index];
  Chip& c = chips_[chip];
  const uint64_t planes = planes_of_die(index);
  const auto user_read = [&] { return next_class(chip, kUserRead, c.read_turn, planes); };
  if (die.busy) {
    if (!worth_suspending(die) || !reads_waiting(chip, planes)) return;
    const bool mapping = (c.queued[kMappingRead] & planes) != 0;
    issue(chip, mapping ? kMappingRead : user_read(), kNoQueue, planes, true);
    return;
  }
  if (die.has_suspended) {
    const bool more = die.reads_since_suspension < kReadsPerSuspension;
    if (!more || !reads_waiting(chip, planes)) return resume(index);
    ++die.reads_since_suspension;
  }
  if ((c.queued[kMappingRead] & planes) != 0) {
    issue(chip, kMappingRead, user_read(), planes, false);
    return;
  }
  if (c.erases > 0 && collector_urgent(chip) && serve_collector(chip, planes)) return;
  if (const uint32_t queue = user_read(); queue != kNoQueue) {
    issue(chip, queue, c.collector_reads > 0 ? kCollectorReads : kNoQueue, planes, false);
    return;
  }
  if ((c.queued[kMappingProgram] & planes) != 0) {
    if (issue(chip, kMappingProgram, kNoQueue, planes, false)) return;
  }
  const uint32_t queue = next_class(chip, kUserProgram, c.program_turn, planes);
  if (queue != kNoQueue && issue(chip, queue, kCollectorProgram, planes, false)) return;
  if (c.erases > 0) serve_collector(chip, planes);
}

bool Engine::serve_collector(uint32_t chip, uint64_t planes) {
  const Chip& c = chips_[chip];
  if (first_reading(chip, planes) != kNone) {
    return issue(chip, kCollectorReads, kNoQueue, planes, false);
  }
  if ((c.queued[kCollectorProgram] & planes) != 0) {
    if (issue(chip, kCollectorProgram, kNoQueue, planes, false)) return true;
  }
  return erase(chip, planes);
}

// Urgent first; the other classes by weight, each visited in turn.
uint32_t Engine::next_class(uint32_t chip, uint32_t first_queue, Turn& turn, uint64_t planes) {
  const auto& queued = chips_[chip].queued;
  if ((queued[first_queue] & planes) != 0) return first_queue;
  uint64_t any = 0;
  for (uint32_t rank = 1; rank < kPriorityClasses; ++rank) any |= queued[first_queue + rank];
  if ((any & planes) == 0) return kNoQueue;
  // All weights come up within one round more than there are, wherever the turn stands. The
  // reference gives up a round early, and the lowest class may wait for the next event.
  const int rounds = mqsim_ ? kWeights[1] : kWeights[1] + 1;
  for (int tries = 0; tries < rounds;) {
    turn.last = turn.last + 1 < static_cast<int>(kPriorityClasses) ? turn.last + 1 : 1;
    if (turn.last == 1) {
      ++tries;
      turn.weight = turn.weight > 1 ? static_cast<int8_t>(turn.weight - 1) : kWeights[1];
    }
    if (kWeights[turn.last] >= turn.weight && (queued[first_queue + turn.last] & planes) != 0) {
      return first_queue + turn.last;
    }
  }
  return kNoQueue;
}

uint32_t Engine::front_of(uint32_t chip, uint32_t queue, uint64_t planes) const {
  const uint32_t first = chip * geometry_.planes_per_chip();
  uint32_t best = kNone;
  for (uint64_t rest = chips_[chip].queued[queue] & planes; rest != 0; rest &= rest - 1) {
    const uint32_t plane = first + static_cast<uint32_t>(std::countr_zero(rest));
    const uint32_t head = ends(queue, plane).head;
    if (best == kNone || transactions_[head].order < transactions_[best].order) best = head;
  }
  return best;
}

uint32_t Engine::first_reading(uint32_t chip, uint64_t planes) const {
  const Chip& c = chips_[chip];
  if (c.collector_reads == 0) return kNone;
  const uint32_t first = chip * geometry_.planes_per_chip();
  for (uint32_t i = c.collections.head; i != kNone; i = collections_[i].next) {
    const Collection& collection = collections_[i];
    if (collection.reads_left > 0 && (planes >> (collection.plane - first) & 1) != 0) return i;
  }
  return kNone;
}

uint32_t Engine::first_unread(uint32_t index) {
  Collection& collection = collections_[index];
  uint32_t word = collection.next_page / 64;
  while (collection.unread[word] == 0) ++word;
  const uint32_t page =
      word * 64 + static_cast<uint32_t>(std::countr_zero(collection.unread[word]));
  collection.next_page = page;
  return page;
}

// Sends one command made of the head of `queue` and what fits to it: same die, other planes, same
// page number. True when a command was chosen, even if the head could not go yet.
bool Engine::issue(uint32_t chip, uint32_t queue, uint32_t second, uint64_t planes, bool suspend) {
  uint32_t plane = 0;
  uint32_t page = 0;
  if (queue == kCollectorReads) {
    const uint32_t collection = first_reading(chip, planes);
    plane = collections_[collection].plane;
    page = first_unread(collection);
  } else {
    const Transaction& front = transactions_[front_of(chip, queue, planes)];
    plane = front.plane;
    page = front.page;
  }
  const uint64_t die_planes = planes_of_die(geometry_.die_of_plane(plane));
  Command command;
  uint64_t taken = 0;
  for (const uint32_t source : {queue, second}) {
    if (source == kNoQueue) continue;
    if (source == kCollectorReads) {
      take_collector_reads(chip, die_planes, command, taken, page);
    } else if (chips_[chip].queued[source] != 0) {
      take_matching(chip, source, die_planes, command, taken, page);
    }
  }
  if (command.count == 0) return mqsim_;
  command.kind = transactions_[command.transactions[0]].kind;
  send_command(command, suspend);
  return true;
}

void Engine::take_matching(uint32_t chip, uint32_t queue, uint64_t planes, Command& command,
                           uint64_t& taken, uint32_t& page) {
  const uint32_t first = chip * geometry_.planes_per_chip();
  const auto take = [&](uint32_t index) {
    taken |= uint64_t{1} << (transactions_[index].plane - first);
    remove_from_queue(chip, queue, index);
    command.transactions[command.count++] = index;
  };
  if (taken == 0) {
    uint32_t best = kNone;
    for (uint64_t rest = chips_[chip].queued[queue] & planes; rest != 0; rest &= rest - 1) {
      uint32_t index = ends(queue, first + static_cast<uint32_t>(std::countr_zero(rest))).head;
      while (index != kNone && !is_ready(transactions_[index])) index = transactions_[index].next;
      if (index == kNone) continue;
      if (best == kNone || transactions_[index].order < transactions_[best].order) best = index;
    }
    if (best == kNone) return;
    take(best);
    if (!mqsim_) page = transactions_[best].page;
  }
  const uint32_t sorted_from = command.count;
  for (uint64_t rest = chips_[chip].queued[queue] & planes & ~taken; rest != 0; rest &= rest - 1) {
    uint32_t index = ends(queue, first + static_cast<uint32_t>(std::countr_zero(rest))).head;
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

uint32_t Engine::take_collector_page(uint32_t chip, uint32_t index, uint32_t page) {
  Collection& collection = collections_[index];
  collection.unread[page / 64] &= ~(uint64_t{1} << (page % 64));
  --collection.reads_left;
  --chips_[chip].collector_reads;
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

void Engine::take_collector_reads(uint32_t chip, uint64_t planes, Command& command, uint64_t& taken,
                                  uint32_t& page) {
  const uint32_t first = chip * geometry_.planes_per_chip();
  for (uint32_t i = chips_[chip].collections.head; i != kNone; i = collections_[i].next) {
    const Collection& collection = collections_[i];
    const uint64_t bit = uint64_t{1} << (collection.plane - first);
    if (collection.reads_left == 0 || (bit & planes & ~taken) == 0) continue;
    if (taken == 0) {
      page = first_unread(i);
    } else if ((collection.unread[page / 64] >> (page % 64) & 1) == 0) {
      continue;
    }
    taken |= bit;
    command.transactions[command.count++] = take_collector_page(chip, i, page);
  }
}

// Erases the first victim that has nothing left to move, and others of its die with it.
bool Engine::erase(uint32_t chip, uint64_t planes) {
  Chip& c = chips_[chip];
  if (c.erases == 0) return false;
  const uint32_t first = chip * geometry_.planes_per_chip();
  Command command;
  command.kind = Kind::kErase;
  uint64_t taken = 0;
  uint32_t previous = kNone;
  for (uint32_t i = c.collections.head; i != kNone;) {
    const Collection& collection = collections_[i];
    const uint32_t next = collection.next;
    const uint64_t bit = uint64_t{1} << (collection.plane - first);
    const bool started = !collection.postponed;
    // The reference looks at the die of the first victim only.
    if (mqsim_ && started && taken == 0 && planes == low_bits(geometry_.planes_per_chip())) {
      planes = planes_of_die(geometry_.die_of_plane(collection.plane));
    }
    if (!started || collection.moves_left > 0 || (bit & planes & ~taken) == 0) {
      previous = i;
      i = next;
      continue;
    }
    if (taken == 0) planes = planes_of_die(geometry_.die_of_plane(collection.plane));
    taken |= bit;
    (previous == kNone ? c.collections.head : collections_[previous].next) = next;
    if (next == kNone) c.collections.tail = previous;
    --c.erases;
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
  send_command(command, false);
  return true;
}

}  // namespace cairn::flash
