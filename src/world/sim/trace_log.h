// SPDX-License-Identifier: Apache-2.0
// TraceLog: the identity of a run as a hash, and its last moments for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "world/sim/event_queue.h"

namespace cairn::sim {

class TraceLog {
 public:
  // Keeps the last `capacity` entries.
  explicit TraceLog(size_t capacity);

  // An event that is about to run.
  void event(const EventQueue::Due& due) {
    const Origin& origin = due.event->origin();
    const EventKind& kind = due.event->kind();
    absorb(kind.hash ^ origin.node, static_cast<uint64_t>(due.when.ns) ^ due.sequence << 1);
    keep({due.when, kind.name, due.sequence, 0, origin.node, origin.core, false});
  }
  // A fact a program, or the simulator, recorded. `what` is a string literal.
  void record(Time at, const Origin& origin, const char* what, uint64_t a, uint64_t b);

  // The same for the same seed and program, whatever the build; any difference in order, time or
  // facts changes it.
  uint64_t hash() const { return hash_; }

  void add_node(std::string name) { nodes_.push_back(std::move(name)); }
  // The kept entries, oldest first, one per line.
  std::string tail() const;

 private:
  struct Entry {
    Time at;
    const char* what;
    uint64_t a;
    uint64_t b;
    uint32_t node;
    uint32_t core;
    bool is_record;
  };
  void absorb(uint64_t a, uint64_t b) {
    const auto product =
        static_cast<unsigned __int128>(hash_ ^ a ^ 0x9e3779b97f4a7c15) * (b ^ 0xd6e8feb86659fd93);
    hash_ += static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    hash_ = hash_ << 13 | hash_ >> 51;
  }
  void keep(const Entry& entry) {
    entries_[next_] = entry;
    next_ = next_ + 1 == entries_.size() ? 0 : next_ + 1;
    ++total_;
  }

  std::vector<Entry> entries_;
  size_t next_ = 0;
  uint64_t total_ = 0;
  uint64_t hash_ = 0;
  std::vector<std::string> nodes_;
};

}  // namespace cairn::sim
