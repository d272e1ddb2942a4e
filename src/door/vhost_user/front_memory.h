// SPDX-License-Identifier: Apache-2.0
// FrontMemory: the memory a front end shares, with its two kinds of addresses: those of the guest,
// and the front end's own, in which it tells where virtqueues are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "door/common/guest_memory.h"
#include "door/vhost_user/wire_format.h"
#include "env/sharing.h"
#include "task/task.h"

namespace cairn::door::vhost_user {

// On one core. Nobody uses memory that is taken away: the queues are stopped.
class FrontMemory {
 public:
  // How many regions a front end may add; more than the first table has.
  static constexpr size_t kSlotsMax = 512;

  explicit FrontMemory(env::Sharing& sharing) : sharing_(sharing) {}

  // Errors as Sharing::map_shared and GuestMemory::add.
  Result<void> add(const MemoryRegion& region, const env::Descriptor& descriptor);
  // kNotFound: there is no such region.
  task::Task<Result<void>> remove(MemoryRegion region);
  task::Task<void> clear();

  // What the guest calls it. None: it is in no region.
  std::optional<uint64_t> guest_address(uint64_t user_address) const;
  GuestMemory& guest() { return guest_; }

 private:
  env::Sharing& sharing_;
  GuestMemory guest_;
  std::vector<MemoryRegion> regions_;
};

}  // namespace cairn::door::vhost_user
