// SPDX-License-Identifier: Apache-2.0
// OwedData: data that a host was asked for by commands that have ended since.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nvme/pdu.h"

namespace cairn::fabric {

// An aborted command's R2T may be answered late; that is no fault of the host. The newest few are
// remembered, so that their data can be told from data nobody asked for.
class OwedData {
 public:
  struct Entry {
    uint16_t ttag = 0;
    uint16_t cid = 0;
    nvme::TransferWindow window;  // begin == end: nothing is owed
  };

  void add(const Entry& entry) {
    entries_[next_] = entry;
    next_ = (next_ + 1) % entries_.size();
  }
  // Null: nothing is owed with this tag.
  Entry* find(uint16_t ttag) {
    for (Entry& entry : entries_) {
      if (entry.ttag == ttag && entry.window.next < entry.window.end) return &entry;
    }
    return nullptr;
  }

 private:
  std::array<Entry, 32> entries_;
  size_t next_ = 0;
};

}  // namespace cairn::fabric
