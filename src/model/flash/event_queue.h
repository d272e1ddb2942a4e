// SPDX-License-Identifier: Apache-2.0
// What happens next: a heap of flash events, and servers that work off a queue one by one.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/flash/parameters.h"

namespace cairn::flash {

inline constexpr Nanos kNever = INT64_MAX;

// When something happens; of two at one time, the one that was scheduled first goes first.
struct Moment {
  Nanos time = kNever;
  uint64_t order = UINT64_MAX;

  friend bool operator<(const Moment& a, const Moment& b) {
    return a.time < b.time || (a.time == b.time && a.order < b.order);
  }
};

// Model time, and the order of what is scheduled for one moment.
struct Clock {
  Nanos now = 0;
  uint64_t order = 0;

  Moment in(Nanos duration) { return {now + duration, order++}; }
};

// What the heap's events are about: a die, a command in the controller, else a channel.
inline constexpr uint32_t kDieEvent = 1U << 31;
inline constexpr uint32_t kCommandEvent = 1U << 30;

// A heap with four children per node: half the levels of a binary one, and the four children of a
// node share two cache lines.
class EventHeap {
 public:
  bool empty() const { return items_.empty(); }
  Moment next() const { return items_.empty() ? Moment{} : items_.front().when; }

  void push(Moment when, uint32_t what) {
    items_.push_back({when, what});
    size_t i = items_.size() - 1;
    while (i > 0) {
      const size_t parent = (i - 1) / 4;
      if (!(items_[i].when < items_[parent].when)) break;
      std::swap(items_[i], items_[parent]);
      i = parent;
    }
  }

  uint32_t pop() {
    const uint32_t what = items_.front().what;
    const Item last = items_.back();
    items_.pop_back();
    if (!items_.empty()) sift_down(last);
    return what;
  }

  void clear() { items_.clear(); }

 private:
  struct Item {
    Moment when;
    uint32_t what;
  };

  void sift_down(const Item& item) {
    const size_t size = items_.size();
    size_t i = 0;
    for (;;) {
      const size_t first = 4 * i + 1;
      if (first >= size) break;
      size_t min = first;
      const size_t end = first + 4 < size ? first + 4 : size;
      for (size_t child = first + 1; child < end; ++child) {
        if (items_[child].when < items_[min].when) min = child;
      }
      if (!(items_[min].when < item.when)) break;
      items_[i] = items_[min];
      i = min;
    }
    items_[i] = item;
  }

  std::vector<Item> items_;
};

// One thing at a time, in order of arrival: a direction of the host link, the DRAM. Its next
// completion is one number, so it needs no place in the heap.
template <class Job>
class Server {
 public:
  Moment next() const { return next_; }
  size_t waiting() const { return tail_ - head_; }
  // Busy time until the last job that was started.
  Nanos busy() const { return busy_; }

  void push(const Job& job, Nanos duration, Clock& clock) {
    if (tail_ - head_ == jobs_.size()) grow();
    jobs_[tail_ & (jobs_.size() - 1)] = {job, duration};
    ++tail_;
    if (!working_) start(clock);
  }
  // The job that is done. The next starts with resume(), after what the job causes.
  Job finish() {
    next_ = Moment{};
    return jobs_[head_++ & (jobs_.size() - 1)].job;
  }
  void resume(Clock& clock) {
    working_ = false;
    if (head_ != tail_) start(clock);
  }
  void clear() {
    head_ = tail_ = 0;
    working_ = false;
    next_ = Moment{};
  }

 private:
  struct Entry {
    Job job;
    Nanos duration = 0;
  };

  void start(Clock& clock) {
    const Nanos duration = jobs_[head_ & (jobs_.size() - 1)].duration;
    working_ = true;
    busy_ += duration;
    next_ = clock.in(duration);
  }
  void grow() {
    std::vector<Entry> larger(jobs_.size() * 2);
    for (size_t i = head_; i < tail_; ++i) {
      larger[i & (larger.size() - 1)] = jobs_[i & (jobs_.size() - 1)];
    }
    jobs_ = std::move(larger);
  }

  std::vector<Entry> jobs_ = std::vector<Entry>(64);  // a power of two
  size_t head_ = 0;
  size_t tail_ = 0;
  bool working_ = false;
  Moment next_;
  Nanos busy_ = 0;
};

}  // namespace cairn::flash
