// SPDX-License-Identifier: Apache-2.0
#include "world/sim/page_store.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/bytes.h"

namespace cairn::sim {

void PageStore::read(uint64_t offset, MutableBytes into) const {
  while (!into.empty()) {
    const size_t inside = offset % kPageSize;
    const size_t count = std::min(into.size(), kPageSize - inside);
    const auto page = pages_.find(offset / kPageSize);
    if (page == pages_.end()) {
      std::memset(into.data(), 0, count);
    } else {
      std::memcpy(into.data(), page->second->data() + inside, count);
    }
    into = into.subspan(count);
    offset += count;
  }
}

bool PageStore::has_data(uint64_t offset, uint64_t length) const {
  for (uint64_t page = offset / kPageSize; page * kPageSize < offset + length; ++page) {
    if (pages_.contains(page)) return true;
  }
  return false;
}

void PageStore::write(uint64_t offset, Bytes from) {
  while (!from.empty()) {
    const size_t inside = offset % kPageSize;
    const size_t count = std::min(from.size(), kPageSize - inside);
    std::unique_ptr<Page>& page = pages_[offset / kPageSize];
    if (page == nullptr) page = std::make_unique<Page>();
    std::memcpy(page->data() + inside, from.data(), count);
    from = from.subspan(count);
    offset += count;
  }
}

void PageStore::write_zeroes(uint64_t offset, uint64_t length) {
  while (length > 0) {
    const size_t inside = offset % kPageSize;
    const size_t count = std::min<uint64_t>(length, kPageSize - inside);
    const auto page = pages_.find(offset / kPageSize);
    if (page != pages_.end()) {
      if (count == kPageSize) {
        pages_.erase(page);
      } else {
        std::memset(page->second->data() + inside, 0, count);
      }
    }
    length -= count;
    offset += count;
  }
}

}  // namespace cairn::sim
