// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/dirty_log.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/bytes.h"
#include "door/vfio_user/limits.h"

namespace cairn::door::vfio_user {

void DirtyLog::start() {
  chunks_.clear();
  is_on_ = true;
  memory_.set_write_log(this);
  note_running_();
}

void DirtyLog::stop() {
  if (!is_on_) return;
  is_on_ = false;
  memory_.set_write_log(nullptr);
  chunks_.clear();
}

void DirtyLog::note(uint64_t address, uint64_t length) {
  if (length == 0) return;
  const uint64_t last = (address + (length - 1)) / kPageSize;
  for (uint64_t page = address / kPageSize; page <= last; ++page) {
    Chunk& chunk = chunks_[page / kChunkPages];
    chunk[page % kChunkPages / 64] |= uint64_t{1} << page % 64;
  }
}

bool DirtyLog::is_noted(uint64_t page) const {
  const auto found = chunks_.find(page / kChunkPages);
  if (found == chunks_.end()) return false;
  return (found->second[page % kChunkPages / 64] >> page % 64 & 1) != 0;
}

void DirtyLog::forget(uint64_t page) {
  const auto found = chunks_.find(page / kChunkPages);
  if (found != chunks_.end()) {
    found->second[page % kChunkPages / 64] &= ~(uint64_t{1} << page % 64);
  }
}

Result<uint64_t> DirtyLog::bitmap_size(uint64_t address, uint64_t length, uint64_t page_size) {
  if (length == 0 || length - 1 > std::numeric_limits<uint64_t>::max() - address) {
    return fail(Errc::kInvalid, "dirty pages of nothing, or beyond the last address");
  }
  if (!std::has_single_bit(page_size) || page_size < kPageSize) {
    return fail(Errc::kInvalid, "the page size of a bitmap", static_cast<int>(page_size));
  }
  const uint64_t pages = (length - 1) / page_size + 1;
  const uint64_t bytes = ((pages - 1) / 64 + 1) * 8;
  if (bytes > kBitmapMax) return fail(Errc::kInvalid, "dirty pages of too much at a time");
  return bytes;
}

std::vector<std::byte> DirtyLog::report(uint64_t address, uint64_t length, uint64_t page_size) {
  const Result<uint64_t> size = bitmap_size(address, length, page_size);
  std::vector<std::byte> bitmap(size ? *size : 0);
  // Rings that are written to without looking them up each time are noted anew.
  memory_.forget_pointers();
  // Pages of ours, told as pages of theirs.
  const uint64_t last = (address + (length - 1)) / kPageSize;
  for (auto& [number, chunk] : chunks_) {
    const uint64_t first_page = number * kChunkPages;
    if (first_page > last || first_page + kChunkPages <= address / kPageSize) continue;
    const uint64_t from = std::max(first_page, address / kPageSize);
    const uint64_t to = std::min(first_page + kChunkPages - 1, last);
    for (uint64_t page = from; page <= to; ++page) {
      if (!is_noted(page)) continue;
      const uint64_t at = std::max(page * kPageSize, address) - address;
      const uint64_t bit = at / page_size;
      bitmap[bit / 8] |= std::byte{1} << bit % 8;
      forget(page);
    }
  }
  note_running_();
  return bitmap;
}

}  // namespace cairn::door::vfio_user
