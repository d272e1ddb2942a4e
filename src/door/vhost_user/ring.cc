// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/ring.h"

#include "door/vhost_user/packed_ring.h"
#include "door/vhost_user/split_ring.h"

namespace cairn::door::vhost_user {

Result<std::unique_ptr<Ring>> Ring::make(const RingOptions& options, GuestMemory& memory) {
  return options.is_packed ? PackedRing::make(options, memory) : SplitRing::make(options, memory);
}

}  // namespace cairn::door::vhost_user
