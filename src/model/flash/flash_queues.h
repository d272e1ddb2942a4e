// SPDX-License-Identifier: Apache-2.0
// Transactions that wait for flash, in lists by queue and plane.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "model/flash/geometry.h"
#include "model/flash/pool.h"
#include "model/flash/transaction.h"

namespace cairn::flash {

// A chip knows by a bit mask which of its planes have something waiting. Masks count planes from
// the chip's first.
class FlashQueues {
 public:
  // Reads by rank, then programs by rank.
  static constexpr uint32_t kMappingRead = 0;
  static constexpr uint32_t kUserRead = 1;
  static constexpr uint32_t kMappingProgram = kUserRead + kPriorityClasses;
  static constexpr uint32_t kUserProgram = kMappingProgram + 1;
  static constexpr uint32_t kCollectorProgram = kUserProgram + kPriorityClasses;
  static constexpr uint32_t kQueues = kCollectorProgram + 1;

  FlashQueues(const Geometry& geometry, Pool<Transaction>& transactions)
      : geometry_(geometry),
        transactions_(transactions),
        lists_(size_t{kQueues} * geometry.planes()),
        chips_(geometry.chips()) {}

  // Puts the transaction behind all that came before; `order` grows.
  void push(uint32_t index, uint64_t order) {
    Transaction& t = transactions_[index];
    const uint32_t queue = queue_of(t);
    t.order = order;
    Ends& list = ends(queue, t.plane);
    t.next = kNone;
    t.prev = list.tail;
    (list.tail == kNone ? list.head : transactions_[list.tail].next) = index;
    list.tail = index;
    const uint32_t chip = geometry_.chip_of_plane(t.plane);
    chips_[chip][queue] |= uint64_t{1} << (t.plane - chip * geometry_.planes_per_chip());
  }
  void remove(uint32_t chip, uint32_t queue, uint32_t index) {
    const Transaction& t = transactions_[index];
    Ends& list = ends(queue, t.plane);
    (t.prev == kNone ? list.head : transactions_[t.prev].next) = t.next;
    (t.next == kNone ? list.tail : transactions_[t.next].prev) = t.prev;
    if (list.head == kNone) {
      const uint32_t local = t.plane - chip * geometry_.planes_per_chip();
      chips_[chip][queue] &= ~(uint64_t{1} << local);
    }
  }

  // First of a list; follow `next`.
  uint32_t head(uint32_t queue, uint32_t plane) const {
    return lists_[size_t{queue} * geometry_.planes() + plane].head;
  }
  // Planes of the chip with something in the queue.
  uint64_t planes(uint32_t chip, uint32_t queue) const { return chips_[chip][queue]; }
  bool has_any(uint32_t chip) const {
    uint64_t any = 0;
    for (const uint64_t planes : chips_[chip]) any |= planes;
    return any != 0;
  }
  // Whether mapping or user reads wait on these planes.
  bool has_reads(uint32_t chip, uint64_t planes) const {
    uint64_t any = chips_[chip][kMappingRead];
    for (uint32_t rank = 0; rank < kPriorityClasses; ++rank) any |= chips_[chip][kUserRead + rank];
    return (any & planes) != 0;
  }
  // The one that waits longest in the queue on these planes, or kNone.
  uint32_t front(uint32_t chip, uint32_t queue, uint64_t planes) const {
    const uint32_t first = chip * geometry_.planes_per_chip();
    uint32_t best = kNone;
    for (uint64_t rest = chips_[chip][queue] & planes; rest != 0; rest &= rest - 1) {
      const uint32_t index = head(queue, first + static_cast<uint32_t>(std::countr_zero(rest)));
      if (best == kNone || transactions_[index].order < transactions_[best].order) best = index;
    }
    return best;
  }

  void clear() {
    lists_.assign(lists_.size(), Ends{});
    chips_.assign(chips_.size(), {});
  }

 private:
  struct Ends {
    uint32_t head = kNone;
    uint32_t tail = kNone;
  };

  static uint32_t queue_of(const Transaction& t) {
    const bool reads = t.kind == Kind::kRead;
    switch (t.source) {
      case Source::kMapping:
        return reads ? kMappingRead : kMappingProgram;
      case Source::kCollector:
        return kCollectorProgram;
      default:
        return (reads ? kUserRead : kUserProgram) + static_cast<uint32_t>(t.priority);
    }
  }
  Ends& ends(uint32_t queue, uint32_t plane) {
    return lists_[size_t{queue} * geometry_.planes() + plane];
  }

  const Geometry& geometry_;
  Pool<Transaction>& transactions_;
  std::vector<Ends> lists_;
  std::vector<std::array<uint64_t, kQueues>> chips_;
};

}  // namespace cairn::flash
