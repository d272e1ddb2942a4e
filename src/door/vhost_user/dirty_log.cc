// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/dirty_log.h"
#include "env/shared_word.h"

#include <algorithm>

namespace cairn::door::vhost_user {

void DirtyLog::mark_pages(uint64_t address, uint64_t length) {
  const MutableBytes bits = memory_->bytes();
  const uint64_t pages = uint64_t{bits.size()} * 8;
  const uint64_t max = UINT64_MAX - address;
  const uint64_t first = address / kPage;
  const uint64_t last = (address + std::min(length - 1, max)) / kPage;
  for (uint64_t page = first; page <= last && page < pages; ++page) {
    env::set_shared_bits<uint8_t>(&bits[page / 8], static_cast<uint8_t>(1u << (page % 8)));
  }
}

}  // namespace cairn::door::vhost_user
