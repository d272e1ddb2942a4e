// SPDX-License-Identifier: Apache-2.0
// What happens next: a calendar of short buckets, and a heap for what is far away.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "model/flash/event_queue.h"
#include "model/flash/pool.h"
#include "model/net/flow.h"

namespace cairn::net {

using flash::kNone;
using flash::Pool;

// Indices of events of a pool; an event has `time` and `order`. Of two events at one time the one
// with the smaller order goes first. Taking the next costs the same however many wait. What is
// sorted is kept apart from the events, which are large and cold: they are fetched meanwhile.
template <class Event>
class EventWheel {
 public:
  explicit EventWheel(Pool<Event>& pool) : pool_(pool), heads_(kBuckets, kNone) {}

  bool empty() const { return open_at_ == open_.size() && waiting_ == 0 && far_.empty(); }

  // Time and order of the event are set, and not before those of the last that was popped.
  void push(uint32_t index) {
    const flash::Moment when{pool_[index].time, pool_[index].order};
    const int64_t bucket = when.time >> kShift;
    if (bucket <= current_) {
      insert_open({when, index});
    } else if (bucket < current_ + kBuckets) {
      put(bucket, {when, index});
    } else {
      far_.push(when, index);
    }
  }

  // The time of the next event; kNever when there is none.
  Picos next_time() const {
    if (open_at_ < open_.size()) return open_[open_at_].when.time;
    Picos time = far_.empty() ? kNever : far_.next().time;
    if (waiting_ > 0) {
      for (uint32_t i = heads_[next_bucket() & kMask]; i != kNone; i = entries_[i].next) {
        time = std::min(time, entries_[i].when.time);
      }
    }
    return time;
  }

  // The next event if it is not after `until`; else kNone.
  uint32_t pop(Picos until) {
    if (open_at_ == open_.size() && !open_next(until)) return kNone;
    if (open_[open_at_].when.time > until) return kNone;
    return open_[open_at_++].index;
  }

  // The event after the one that was popped last, if it is as near as that is known.
  uint32_t following() const { return open_at_ < open_.size() ? open_[open_at_].index : kNone; }

 private:
  static constexpr int kShift = 11;  // 2 ns: a few events per bucket in a busy network
  static constexpr int64_t kBuckets = 1 << 14;
  static constexpr int64_t kMask = kBuckets - 1;

  struct Entry {
    flash::Moment when;
    uint32_t index = kNone;
    uint32_t next = kNone;  // in its bucket
  };

  void put(int64_t bucket, Entry entry) {
    uint32_t& head = heads_[bucket & kMask];
    entry.next = head;
    head = entries_.take();
    entries_[head] = entry;
    full_[(bucket & kMask) >> 6] |= 1ULL << (bucket & 63);
    ++waiting_;
  }
  void insert_open(const Entry& entry) {
    open_.push_back(entry);
    size_t i = open_.size() - 1;
    while (i > open_at_ && entry.when < open_[i - 1].when) {
      open_[i] = open_[i - 1];
      --i;
    }
    open_[i] = entry;
  }
  // The first bucket after the current one that holds something; only when one does.
  int64_t next_bucket() const {
    int64_t bucket = current_ + 1;
    for (;;) {
      const uint64_t word = full_[(bucket & kMask) >> 6] >> (bucket & 63);
      if (word != 0) return bucket + std::countr_zero(word);
      bucket = (bucket | 63) + 1;
    }
  }
  // Makes the next bucket the current one, unless it begins after `until`.
  bool open_next(Picos until) {
    int64_t bucket = waiting_ > 0 ? next_bucket() : INT64_MAX;
    if (!far_.empty()) bucket = std::min(bucket, far_.next().time >> kShift);
    if (bucket == INT64_MAX || (bucket << kShift) > until) return false;
    current_ = bucket;
    open_.clear();
    open_at_ = 0;
    while (!far_.empty() && (far_.next().time >> kShift) < current_ + kBuckets) {
      const flash::Moment when = far_.next();
      put(when.time >> kShift, {when, far_.pop()});
    }
    uint32_t& head = heads_[current_ & kMask];
    while (head != kNone) {
      const uint32_t entry = head;
      open_.push_back(entries_[entry]);
      __builtin_prefetch(&pool_[open_.back().index]);
      head = entries_[entry].next;
      entries_.give_back(entry);
    }
    full_[(current_ & kMask) >> 6] &= ~(1ULL << (current_ & 63));
    waiting_ -= open_.size();
    sort_open();
    return true;
  }
  void sort_open() {
    const size_t size = open_.size();
    if (size > 24) {
      std::ranges::sort(open_, [](const Entry& a, const Entry& b) { return a.when < b.when; });
      return;
    }
    for (size_t i = 1; i < size; ++i) {
      const Entry entry = open_[i];
      size_t j = i;
      while (j > 0 && entry.when < open_[j - 1].when) {
        open_[j] = open_[j - 1];
        --j;
      }
      open_[j] = entry;
    }
  }

  Pool<Event>& pool_;
  Pool<Entry> entries_;  // in buckets
  std::vector<uint32_t> heads_;
  std::vector<uint64_t> full_ = std::vector<uint64_t>(kBuckets / 64);
  size_t waiting_ = 0;       // in buckets after the current one
  std::vector<Entry> open_;  // what is in the current bucket or before it, sorted
  size_t open_at_ = 0;
  int64_t current_ = -1;
  flash::EventHeap far_;
};

}  // namespace cairn::net
