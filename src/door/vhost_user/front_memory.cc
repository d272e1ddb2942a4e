// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/front_memory.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace cairn::door::vhost_user {

Result<void> FrontMemory::add(const MemoryRegion& region, const env::Descriptor& descriptor) {
  if (regions_.size() == kSlotsMax) return fail(Errc::kLimit, "regions of memory", kSlotsMax);
  Result<std::unique_ptr<env::SharedMemory>> memory = sharing_.map_shared(
      descriptor, {.offset = region.mmap_offset, .size = region.size, .writable = true});
  if (!memory) return fail(memory.error());
  const Result<void> added = guest_.add(region.guest_address, std::move(*memory));
  if (added) regions_.push_back(region);
  return added;
}

task::Task<Result<void>> FrontMemory::remove(MemoryRegion region) {
  const auto found = std::ranges::find_if(regions_, [&](const MemoryRegion& each) {
    return each.guest_address == region.guest_address && each.size == region.size &&
           each.user_address == region.user_address;
  });
  if (found == regions_.end()) co_return fail(Errc::kNotFound, "no such region of memory");
  regions_.erase(found);
  const Result<void> removed = co_await guest_.remove(region.guest_address, region.size);
  co_return removed;
}

task::Task<void> FrontMemory::clear() {
  regions_.clear();
  return guest_.clear();
}

std::optional<uint64_t> FrontMemory::guest_address(uint64_t user_address) const {
  for (const MemoryRegion& each : regions_) {
    const uint64_t offset = user_address - each.user_address;
    if (user_address >= each.user_address && offset < each.size) {
      return each.guest_address + offset;
    }
  }
  return std::nullopt;
}

}  // namespace cairn::door::vhost_user
