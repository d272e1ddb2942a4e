// SPDX-License-Identifier: Apache-2.0
// DirtyLog: which pages of guest memory the device has written, a bit each, for a front end that
// moves the guest to another machine meanwhile.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "env/sharing.h"

namespace cairn::door::vhost_user {

// On one core; the front end reads and clears the same bits.
class DirtyLog {
 public:
  static constexpr uint64_t kPage = 4096;

  // Null: there is none.
  void set(std::unique_ptr<env::SharedMemory> memory) { memory_ = std::move(memory); }
  // Whether writes are noted at all, as the front end likes.
  void enable(bool is_enabled) { is_enabled_ = is_enabled; }

  // After the write. What lies beyond the log is not noted: there is no bit for it.
  void mark(uint64_t address, uint64_t length) {
    if (is_enabled_ && memory_ != nullptr && length > 0) mark_pages(address, length);
  }

 private:
  void mark_pages(uint64_t address, uint64_t length);

  std::unique_ptr<env::SharedMemory> memory_;
  bool is_enabled_ = false;
};

}  // namespace cairn::door::vhost_user
