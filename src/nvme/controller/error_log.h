// SPDX-License-Identifier: Apache-2.0
// ErrorLog: the last commands of a controller that failed (log page 01h).
#pragma once

#include <array>
#include <cstdint>

#include "nvme/format/command_format.h"
#include "nvme/format/limits.h"
#include "nvme/format/log_format.h"

namespace cairn::nvme {

class ErrorLog {
 public:
  // `transport`: TRTYPE of the controller's; 3 is TCP, 0 none that has a number.
  explicit ErrorLog(uint8_t transport = 3) : transport_(transport) {}

  // Keeps the failure of a command of queue `sqid`; the oldest gives way.
  void add(uint16_t sqid, const Sqe& sqe, Status status) {
    ErrorEntry& entry = entries_[count_ % kErrorEntriesMax];
    entry = {};
    entry.error_count = ++count_;
    entry.sqid = sqid;
    entry.cid = sqe.cid;
    entry.status = status.to_wire();
    entry.parameter = 0xffff;
    if (sqid != 0) entry.lba = sqe.cdw10_11();
    if (!sqe.is_fabrics()) entry.nsid = sqe.nsid;
    entry.transport = transport_;
  }

  // Failures over the controller's life.
  uint64_t count() const { return count_; }

  using Page = std::array<ErrorEntry, kErrorEntriesMax>;
  // Newest first.
  Page page() const {
    Page page{};
    for (uint64_t i = 0; i < kErrorEntriesMax && i < count_; ++i) {
      page[i] = entries_[(count_ - 1 - i) % kErrorEntriesMax];
    }
    return page;
  }

 private:
  uint8_t transport_;
  Page entries_{};
  uint64_t count_ = 0;
};

}  // namespace cairn::nvme
