// SPDX-License-Identifier: Apache-2.0
#include "world/sim/event_queue.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"

namespace cairn::sim {

EventQueue::~EventQueue() {
  for (const Due& due : heap_) due.event->queue_ = nullptr;
}

void EventQueue::insert(Due due) {
  CHECK(due.event->queue_ == nullptr, "an event is scheduled once at a time");
  due.event->queue_ = this;
  next_sequence_ = std::max(next_sequence_, due.sequence + 1);
  heap_.push_back(due);
  sift_up(heap_.size() - 1, due);
}

void EventQueue::cancel(Event& event) {
  CHECK(event.queue_ == this);
  event.queue_ = nullptr;
  remove(event.index_);
}

EventQueue::Due EventQueue::pop() {
  CHECK(!heap_.empty());
  const Due first = heap_.front();
  first.event->queue_ = nullptr;
  remove(0);
  return first;
}

void EventQueue::remove(size_t index) {
  const Due last = heap_.back();
  heap_.pop_back();
  if (index == heap_.size()) return;
  if (index > 0 && before(last, heap_[(index - 1) / kArity])) {
    sift_up(index, last);
  } else {
    sift_down(index, last);
  }
}

void EventQueue::sift_up(size_t index, const Due& due) {
  while (index > 0) {
    const size_t parent = (index - 1) / kArity;
    if (!before(due, heap_[parent])) break;
    place(index, heap_[parent]);
    index = parent;
  }
  place(index, due);
}

void EventQueue::sift_down(size_t index, const Due& due) {
  const size_t size = heap_.size();
  while (true) {
    const size_t first = index * kArity + 1;
    if (first >= size) break;
    size_t best = first;
    const size_t end = std::min(first + kArity, size);
    for (size_t child = first + 1; child < end; ++child) {
      if (before(heap_[child], heap_[best])) best = child;
    }
    if (!before(heap_[best], due)) break;
    place(index, heap_[best]);
    index = best;
  }
  place(index, due);
}

void EventQueue::move_owned(const void* owner, EventQueue& to) {
  std::vector<Due> others;
  others.reserve(heap_.size());
  for (const Due& due : heap_) {
    due.event->queue_ = nullptr;
    if (due.event->origin().owner == owner) {
      to.insert(due);
    } else {
      others.push_back(due);
    }
  }
  heap_.clear();
  for (const Due& due : others) insert(due);
}

size_t EventQueue::count_owned(const void* owner) const {
  return static_cast<size_t>(std::count_if(heap_.begin(), heap_.end(), [=](const Due& due) {
    return due.event->origin().owner == owner;
  }));
}

}  // namespace cairn::sim
