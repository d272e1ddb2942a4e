// SPDX-License-Identifier: Apache-2.0
// OwedData: data that a host was asked for by commands that have ended since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nvme/format/pdu.h"

namespace cairn::fabric {

// An aborted command's R2T may be answered late; that is no fault of the host. As many of them are
// remembered as there can be commands at once, so that their data can be told from data nobody
// asked for; of more the newest. Takes memory once there is one.
class OwedData {
 public:
  struct Entry {
    uint16_t ttag = 0;
    uint16_t cid = 0;
    nvme::TransferWindow window;  // begin == end: nothing is owed
  };

  // Forgets the oldest when there are `max` of which data is owed.
  void add(const Entry& entry, size_t max) {
    if (entries_.size() < max) entries_.resize(max);
    for (size_t tried = 0; tried < entries_.size() && is_owed(entries_[next_]); ++tried) advance();
    entries_[next_] = entry;
    advance();
  }
  // Null: nothing is owed with this tag.
  Entry* find(uint16_t ttag) {
    for (Entry& entry : entries_) {
      if (entry.ttag == ttag && is_owed(entry)) return &entry;
    }
    return nullptr;
  }

 private:
  static bool is_owed(const Entry& entry) { return entry.window.next < entry.window.end; }
  void advance() { next_ = (next_ + 1) % entries_.size(); }

  std::vector<Entry> entries_;
  size_t next_ = 0;
};

}  // namespace cairn::fabric
