// SPDX-License-Identifier: Apache-2.0
#include "door/common/guest_memory.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"

namespace cairn::door {

namespace {

constexpr uint64_t kLastAddress = std::numeric_limits<uint64_t>::max();

// Ranges are compared by their last address: the one after it may not exist.
bool fits(uint64_t address, uint64_t size) {
  return size > 0 && size - 1 <= kLastAddress - address;
}
uint64_t last_of(const GuestRegion& region) { return region.address() + (region.size() - 1); }

task::Task<void> until_unused(std::vector<std::unique_ptr<GuestRegion>> regions) {
  for (const auto& region : regions) co_await region->users().close();
}

}  // namespace

GuestMemory::Regions::iterator GuestMemory::after(uint64_t address) {
  return std::ranges::upper_bound(regions_, address, {},
                                  [](const auto& region) { return region->address(); });
}

Result<void> GuestMemory::add(uint64_t address, std::unique_ptr<env::SharedMemory> memory,
                              bool writable) {
  CHECK(memory != nullptr, "a region has memory");
  const uint64_t size = memory->bytes().size();
  if (!fits(address, size)) {
    return fail(Errc::kInvalid, "a region of guest memory is empty or beyond the last address");
  }
  if (regions_.size() == kRegionsMax) {
    return fail(Errc::kLimit, "regions of guest memory", kRegionsMax);
  }
  const auto next = after(address);
  const bool meets_next = next != regions_.end() && (*next)->address() <= address + (size - 1);
  const bool meets_previous = next != regions_.begin() && last_of(**std::prev(next)) >= address;
  if (meets_next || meets_previous) {
    return fail(Errc::kExists, "a region of guest memory overlaps another");
  }
  regions_.insert(next, std::make_unique<GuestRegion>(address, std::move(memory), writable));
  ++generation_;
  return {};
}

GuestMemory::Regions GuestMemory::take(Regions::iterator first, Regions::iterator last) {
  Regions taken(std::make_move_iterator(first), std::make_move_iterator(last));
  regions_.erase(first, last);
  last_ = nullptr;
  ++generation_;
  return taken;
}

task::Task<Result<void>> GuestMemory::remove(uint64_t address, uint64_t size) {
  if (size == 0) co_return fail(Errc::kNotFound, "no guest memory in an empty range");
  if (!fits(address, size)) {
    co_return fail(Errc::kInvalid, "a range of guest memory beyond the last address");
  }
  const uint64_t last_address = address + (size - 1);
  auto first = after(address);
  const auto end = after(last_address);
  // The one before may begin at the address, or reach into the range.
  if (first != regions_.begin()) {
    const auto previous = std::prev(first);
    if ((*previous)->address() == address) {
      first = previous;
    } else if (last_of(**previous) >= address) {
      co_return fail(Errc::kInvalid, "a region of guest memory lies partly in the range");
    }
  }
  if (first == end) co_return fail(Errc::kNotFound, "no guest memory in the range");
  if (last_of(**std::prev(end)) > last_address) {
    co_return fail(Errc::kInvalid, "a region of guest memory lies partly in the range");
  }
  co_await until_unused(take(first, end));
  co_return Result<void>{};
}

task::Task<void> GuestMemory::clear() {
  co_await until_unused(take(regions_.begin(), regions_.end()));
}

GuestRegion* GuestMemory::region_of(uint64_t address) {
  const auto has = [&](const GuestRegion& region) {
    return address >= region.address() && address - region.address() < region.size();
  };
  if (last_ != nullptr && has(*last_)) return last_;
  const auto next = after(address);
  if (next == regions_.begin() || !has(**std::prev(next))) return nullptr;
  last_ = std::prev(next)->get();
  return last_;
}

GuestMemory::Piece GuestMemory::find(uint64_t address, uint64_t length, bool for_writing) {
  const Piece front = find_front(address, length, for_writing);
  return front.bytes.size() == length ? front : Piece{};
}

GuestMemory::Piece GuestMemory::find_front(uint64_t address, uint64_t length, bool for_writing) {
  GuestRegion* region = region_of(address);
  if (region == nullptr || (for_writing && !region->is_writable())) return {};
  const uint64_t offset = address - region->address();
  const uint64_t count = std::min(length, region->size() - offset);
  if (for_writing && write_log_ != nullptr) write_log_->note(address, count);
  return {region, region->memory().bytes().subspan(offset, count)};
}

}  // namespace cairn::door
