// SPDX-License-Identifier: Apache-2.0
// The future of a simulated world: events in the order (time, sequence), in a 4-ary heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace cairn::sim {

class Event;
class EventQueue;

// A stable hash of text: the same in every build and run, unlike a pointer or std::hash.
constexpr uint64_t hash_text(const char* text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (; *text != 0; ++text) hash = (hash ^ static_cast<uint8_t>(*text)) * 0x100000001b3;
  return hash;
}

// What all events of one sort share. Constants of static lifetime.
struct EventKind {
  using Run = void (*)(Event&);
  constexpr EventKind(const char* kind_name, Run function)
      : name(kind_name), run(function), hash(hash_text(kind_name)) {}
  const char* name;
  Run run;
  uint64_t hash;
};

// Where events come from: one core of a node, or the world between the nodes. Outlives its events.
struct Origin {
  static constexpr uint32_t kNoNode = UINT32_MAX;
  uint32_t node = kNoNode;
  uint32_t core = 0;
  const void* owner = nullptr;  // the process, so that its events can be found when it dies
  EventQueue* held = nullptr;   // while paused: where its due events wait instead of running
};

// Lives in its owner; scheduled any number of times, once at a time. Cancelled by destruction.
class Event {
 public:
  Event(const EventKind& kind, const Origin& origin) : kind_(&kind), origin_(&origin) {}
  ~Event() { cancel(); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  bool is_scheduled() const { return queue_ != nullptr; }
  // It will not run any more; nothing happens when it is not scheduled.
  inline void cancel();

  const EventKind& kind() const { return *kind_; }
  const Origin& origin() const { return *origin_; }
  void set_origin(const Origin& origin) { origin_ = &origin; }

 private:
  friend class EventQueue;
  const EventKind* kind_;
  const Origin* origin_;
  EventQueue* queue_ = nullptr;
  size_t index_ = 0;
};

// Scheduling and cancelling cost O(log n); nothing is allocated once the heap has grown to its
// largest size. Events of the same time run in the order they were scheduled.
class EventQueue {
 public:
  // An event that was taken out, with its place in the order.
  struct Due {
    Time when;
    uint64_t sequence;
    Event* event;
  };

  EventQueue() = default;
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // `event` must not be scheduled.
  void schedule(Event& event, Time when) { insert({when, next_sequence_++, &event}); }
  // Puts back, here or in another queue, what was taken out; it keeps its place.
  void insert(Due due);
  void cancel(Event& event);

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  // never() when empty.
  Time next() const { return heap_.empty() ? Time::never() : heap_.front().when; }
  // The first; the queue must not be empty.
  Due pop();

  // Moves all events of `owner` to `to`; they keep their places. O(n), for when a process dies.
  void move_owned(const void* owner, EventQueue& to);
  // How many events of `owner` are scheduled. O(n).
  size_t count_owned(const void* owner) const;

 private:
  static bool before(const Due& a, const Due& b) {
    return a.when.ns != b.when.ns ? a.when.ns < b.when.ns : a.sequence < b.sequence;
  }
  void place(size_t index, const Due& due) {
    heap_[index] = due;
    due.event->index_ = index;
  }
  void sift_up(size_t index, const Due& due);
  void sift_down(size_t index, const Due& due);
  void remove(size_t index);

  static constexpr size_t kArity = 4;
  std::vector<Due> heap_;
  uint64_t next_sequence_ = 0;
};

inline void Event::cancel() {
  if (queue_ != nullptr) queue_->cancel(*this);
}

}  // namespace cairn::sim
