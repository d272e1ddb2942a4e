// SPDX-License-Identifier: Apache-2.0
#include "testing/guest/client_access.h"

#include "door/vfio_user/limits.h"
#include "door/vfio_user/wire_format.h"
#include "nvme/format/field.h"

namespace cairn::door::vfio_user {

task::Task<Result<void>> ClientAccess::read(uint64_t offset, MutableBytes into) {
  return client_.read(kBar0, offset, into);
}

task::Task<Result<void>> ClientAccess::write(uint64_t offset, Bytes from) {
  return client_.write(kBar0, offset, from);
}

void ClientAccess::ring(Doorbell doorbell, uint32_t value) { gate_.spawn(send(doorbell, value)); }

task::Task<void> ClientAccess::send(Doorbell doorbell, uint32_t value) {
  const nvme::Le32 word(value);
  Result<void> sent =
      co_await client_.write(kBar0, kDoorbellsAt + doorbell.offset(), nvme::bytes_of(word));
  if (sent_ && !sent) sent_ = sent;
}

task::Task<Result<void>> ClientAccess::close() {
  co_await gate_.close();
  co_return sent_;
}

}  // namespace cairn::door::vfio_user
