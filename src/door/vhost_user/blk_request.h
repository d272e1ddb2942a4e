// SPDX-License-Identifier: Apache-2.0
// BlkRequest: what a chain asks of a block device (virtio 1.2, section 5.2.6), with its memory
// found. How the driver cut it into segments means nothing: header, data and status are where they
// are in the run of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/common/guest_memory.h"
#include "door/vhost_user/chain.h"
#include "door/vhost_user/virtio_format.h"

namespace cairn::door::vhost_user {

// Kept by its owner from request to request, so that its lists are made once.
struct BlkRequest {
  uint32_t type = 0;
  uint64_t sector = 0;
  std::vector<MutableBytes> data;  // read from, or written to, by the device
  std::vector<Segment> places;     // of the data, in guest memory
  size_t data_size = 0;
  std::byte* status = nullptr;
  uint64_t status_address = 0;

  bool is_flush() const { return type == static_cast<uint32_t>(BlkType::kFlush); }
  bool is_change() const {
    return type == static_cast<uint32_t>(BlkType::kOut) ||
           type == static_cast<uint32_t>(BlkType::kDiscard) ||
           type == static_cast<uint32_t>(BlkType::kWriteZeroes);
  }
};

// kInvalid: there is no place for a status, so that the driver cannot even be told. Otherwise there
// is one; kUnreachable: the rest is not in guest memory, or too short to be a request.
Result<void> read_request(const Chain& chain, GuestMemory& memory, BlkRequest& request);

}  // namespace cairn::door::vhost_user
