// SPDX-License-Identifier: Apache-2.0
// DirtyLog: which pages of a client's memory a device has written to, for a client that copies this
// memory elsewhere while the device runs.
//
// A page is noted when the device finds it for writing, which is before it writes. So whenever
// pages are forgotten, those that the device found before and may still write to are noted anew: at
// the start, when they were found before anybody logged, and after each report. Other pages are
// told once for each time they are written, however busy the device is.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "door/common/guest_memory.h"

namespace cairn::door::vfio_user {

// On one core. Grows with the memory that is written to, at most 1/32768 of what a client lists.
class DirtyLog final : public door::GuestMemory::WriteLog {
 public:
  // `note_running` is Device::note_writes of the device that uses the memory.
  DirtyLog(door::GuestMemory& memory, std::function<void()> note_running)
      : memory_(memory), note_running_(std::move(note_running)) {}
  ~DirtyLog() { stop(); }
  DirtyLog(const DirtyLog&) = delete;
  DirtyLog& operator=(const DirtyLog&) = delete;

  void start();
  void stop();
  bool is_on() const { return is_on_; }

  // How many bytes the bitmap of a range has: whole words of 64 pages. kInvalid: nothing, beyond
  // the last address, no page size, or a bitmap beyond kBitmapMax.
  static Result<uint64_t> bitmap_size(uint64_t address, uint64_t length, uint64_t page_size);
  // The bitmap of a range for which bitmap_size has a value; bit i of it is page i of the range.
  std::vector<std::byte> report(uint64_t address, uint64_t length, uint64_t page_size);

  void note(uint64_t address, uint64_t length) override;

 private:
  // 32768 pages of 4 KiB.
  static constexpr uint64_t kChunkPages = 32768;
  using Chunk = std::array<uint64_t, kChunkPages / 64>;

  bool is_noted(uint64_t page) const;
  void forget(uint64_t page);

  door::GuestMemory& memory_;
  std::function<void()> note_running_;
  std::unordered_map<uint64_t, Chunk> chunks_;
  bool is_on_ = false;
};

}  // namespace cairn::door::vfio_user
