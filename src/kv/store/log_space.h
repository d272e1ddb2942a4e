// SPDX-License-Identifier: Apache-2.0
// LogSpace: what is used and what is free of one circular log, and who may take of it.
//
// Positions never go back, and begin with the size: the place of one in the log is position % size.
// From head to tail lies what is used; compaction moves the head. A pin keeps what lies behind the
// head from being overwritten: recovery still reads it.
//
// Whoever appends has reserved room before, and waits for it only while it holds nothing that
// compaction needs. The last of the room is kept for those that make room: what they reserve is
// there when others have taken all they may.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/list.h"
#include "task/operation.h"
#include "task/sync.h"

namespace cairn::kv::store {

class LogSpace {
 public:
  // Who reserves. Compaction can use all but the margin, those that erase and move values keep away
  // from what compaction of this log needs, and writers from what those need.
  enum class User : uint8_t { kWriter, kMover, kCompaction };

  struct Limits {
    uint64_t size = 0;
    uint64_t margin = 0;  // lost at the end of a lap, where a record does not fit
    uint64_t movers = 0;  // kept for User::kMover
    uint64_t compaction = 0;
    uint64_t low = 0;  // less is free: compaction begins
  };
  struct Ends {
    uint64_t head = 0;
    uint64_t tail = 0;
  };
  LogSpace(const Limits& limits, Ends ends) : limits_(limits), ends_(ends), pin_(UINT64_MAX) {
    CHECK(ends.tail >= limits.size && ends.head <= ends.tail);
  }

  uint64_t size() const { return limits_.size; }
  uint64_t head() const { return ends_.head; }
  uint64_t tail() const { return ends_.tail; }
  uint64_t place_of(uint64_t position) const { return position % limits_.size; }
  // The position of a place among the last size() positions before the tail.
  uint64_t position_of(uint64_t place) const {
    const uint64_t last = ends_.tail - 1;
    return last - (last - place) % limits_.size;
  }
  // Up to the end of the lap, where the log is cut.
  uint64_t lap_left(uint64_t position) const { return limits_.size - place_of(position); }

  uint64_t free() const {
    return limits_.size - (ends_.tail - std::min(ends_.head, pin_)) - reserved_;
  }
  bool is_low() const { return free() < limits_.low || has_waiters(); }
  // Set whenever it gets low.
  task::Event& low() { return low_; }

  bool try_reserve(uint64_t count, User user) {
    if (!waiters_of(user).empty() || !has_room(count, user)) return false;
    take(count);
    return true;
  }

  class Reserve : public task::Operation<void>, public ListHook<LogSpace> {
   public:
    Reserve(LogSpace& space, uint64_t count, User user, task::CancelToken token)
        : Operation(token), space_(space), count_(count), user_(user) {}

   private:
    friend class LogSpace;
    void start() override {
      if (space_.try_reserve(count_, user_)) return complete({});
      space_.waiters_of(user_).push_back(*this);
      space_.low_.set();
    }
    void cancel() override {
      ListHook<LogSpace>::unlink();
      complete(cancelled());
      space_.serve();
    }
    LogSpace& space_;
    const uint64_t count_;
    const User user_;
  };
  // First come, first served among those of one kind. kCancelled, kTimedOut: by the token.
  Reserve reserve(uint64_t count, User user, task::CancelToken token) {
    return {*this, count, user, token};
  }
  // Room that was reserved and is not needed.
  void release(uint64_t count) {
    CHECK(count <= reserved_);
    reserved_ -= count;
    serve();
  }

  // The tail moves over what was reserved, or over what is lost at the end of a lap.
  void append(uint64_t count) {
    CHECK(count <= reserved_);
    reserved_ -= count;
    ends_.tail += count;
  }
  void skip(uint64_t count) {
    ends_.tail += count;
    CHECK(ends_.tail - std::min(ends_.head, pin_) <= limits_.size, "the margin was too small");
    if (is_low()) low_.set();
  }
  void move_head(uint64_t to) {
    CHECK(to >= ends_.head && to <= ends_.tail);
    ends_.head = to;
    serve();
  }
  // Nothing from here on is overwritten. Only ever moves on.
  void pin(uint64_t position) {
    pin_ = position;
    serve();
  }
  uint64_t pinned() const { return pin_; }

 private:
  using Waiters = List<Reserve, LogSpace>;

  Waiters& waiters_of(User user) { return waiters_[static_cast<size_t>(user)]; }
  bool has_waiters() const {
    return std::ranges::any_of(waiters_, [](const Waiters& some) {
      return const_cast<Waiters&>(some).front() != nullptr;
    });
  }
  bool has_room(uint64_t count, User user) const {
    uint64_t keep = limits_.margin;
    if (user != User::kCompaction) keep += limits_.compaction;
    if (user == User::kWriter) keep += limits_.movers;
    return free() >= keep && free() - keep >= count;
  }
  void take(uint64_t count) {
    reserved_ += count;
    if (is_low()) low_.set();
  }
  // Those that make room first.
  void serve() {
    for (const User user : {User::kCompaction, User::kMover, User::kWriter}) {
      while (Reserve* first = waiters_of(user).front()) {
        if (!has_room(first->count_, user)) return;
        waiters_of(user).pop_front();
        take(first->count_);
        first->complete({});
      }
    }
  }

  const Limits limits_;
  Ends ends_;
  uint64_t pin_;
  uint64_t reserved_ = 0;
  std::array<Waiters, 3> waiters_;
  task::Event low_;
};

// Reserved room that goes back with the scope, but for what was used.
class Room {
 public:
  Room() = default;
  Room(LogSpace& space, uint64_t count) : space_(&space), count_(count) {}
  Room(Room&& other) noexcept
      : space_(std::exchange(other.space_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Room& operator=(Room&& other) noexcept {
    if (this != &other) {
      release();
      space_ = std::exchange(other.space_, nullptr);
      count_ = std::exchange(other.count_, 0);
    }
    return *this;
  }
  ~Room() { release(); }

  uint64_t count() const { return count_; }
  // Somebody appended so much of it.
  void used(uint64_t count) {
    CHECK(count <= count_);
    count_ -= count;
  }
  void release() {
    if (space_ != nullptr && count_ > 0) space_->release(std::exchange(count_, 0));
  }

 private:
  LogSpace* space_ = nullptr;
  uint64_t count_ = 0;
};

}  // namespace cairn::kv::store
