// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/dma_table.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "door/vfio_user/limits.h"

namespace cairn::door::vfio_user {

namespace {

bool fits(uint64_t address, uint64_t size) {
  return size > 0 && size - 1 <= std::numeric_limits<uint64_t>::max() - address;
}

}  // namespace

bool DmaTable::is_over_unshared(const Range& range) const {
  return std::ranges::any_of(unshared_, [&](const Range& other) {
    return range.address <= other.last && other.address <= range.last;
  });
}

bool DmaTable::is_over_shared(const Range& range) const {
  return std::ranges::any_of(memory_.regions(), [&](const auto& region) {
    return range.address <= region->address() + (region->size() - 1) &&
           region->address() <= range.last;
  });
}

Result<void> DmaTable::map(const DmaMap& request, const env::Descriptor* descriptor) {
  const uint32_t flags = request.flags;
  if (flags == 0 || (flags & ~(kDmaReadable | kDmaWritable)) != 0) {
    return fail(Errc::kInvalid, "flags of DMA_MAP are neither readable nor writable");
  }
  if (!fits(request.address, request.size)) {
    return fail(Errc::kInvalid, "DMA_MAP of nothing, or beyond the last address");
  }
  const Range range{request.address, request.address + (request.size - 1)};
  if (is_over_unshared(range) || is_over_shared(range)) {
    return fail(Errc::kExists, "DMA_MAP over memory that is listed");
  }
  if (unshared_.size() + memory_.regions().size() >= kMapsMax) {
    return fail(Errc::kLimit, "regions of a client's memory", static_cast<int>(kMapsMax));
  }
  if (descriptor == nullptr) {
    unshared_.push_back(range);
    return {};
  }
  const bool is_writable = (flags & kDmaWritable) != 0;
  Result<std::unique_ptr<env::SharedMemory>> mapped = sharing_.map_shared(
      *descriptor, {.offset = request.offset, .size = request.size, .writable = is_writable});
  if (!mapped) return fail(mapped.error());
  return memory_.add(request.address, std::move(*mapped), is_writable);
}

task::Task<Result<void>> DmaTable::unmap(uint64_t address, uint64_t size, Device& device) {
  if (!fits(address, size)) {
    co_return fail(Errc::kInvalid, "DMA_UNMAP of nothing, or beyond the last address");
  }
  const Range range{address, address + (size - 1)};
  const auto is_inside = [&](const Range& other) {
    return other.address >= range.address && other.last <= range.last;
  };
  const auto is_cut = [&](const Range& other) {
    return other.address <= range.last && other.last >= range.address && !is_inside(other);
  };
  if (std::ranges::any_of(unshared_, is_cut)) {
    co_return fail(Errc::kInvalid, "DMA_UNMAP of a part of what was listed");
  }
  const bool had_unshared = std::ranges::any_of(unshared_, is_inside);
  if (is_over_shared(range)) {
    device.abandon(address, size);
    const Result<void> removed = co_await memory_.remove(address, size);
    if (!removed) co_return removed;
  } else if (!had_unshared) {
    co_return fail(Errc::kNotFound, "DMA_UNMAP of memory that was not listed");
  }
  std::erase_if(unshared_, is_inside);
  co_return Result<void>{};
}

task::Task<void> DmaTable::unmap_all(Device& device) {
  unshared_.clear();
  for (const auto& region : memory_.regions()) device.abandon(region->address(), region->size());
  co_await memory_.clear();
}

}  // namespace cairn::door::vfio_user
