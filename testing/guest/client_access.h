// SPDX-License-Identifier: Apache-2.0
// ClientAccess: a driver's way to a device that is behind a client of the protocol.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "task/gate.h"
#include "task/task.h"
#include "testing/guest/client.h"
#include "testing/guest/driver.h"

namespace cairn::door::vfio_user {

// On one core. The client outlives it. Closed before it goes.
class ClientAccess final : public DriverAccess {
 public:
  explicit ClientAccess(Client& client) : client_(client) {}

  task::Task<Result<void>> read(uint64_t offset, MutableBytes into) override;
  task::Task<Result<void>> write(uint64_t offset, Bytes from) override;
  MutableBytes doorbells() override { return client_.doorbells(); }
  // By a message, in order with the others; that one could not be sent is known to close().
  void ring(Doorbell doorbell, uint32_t value) override;

  // Waits for the messages of ring(). The first error of theirs.
  task::Task<Result<void>> close();

 private:
  task::Task<void> send(Doorbell doorbell, uint32_t value);

  Client& client_;
  Result<void> sent_;
  task::Gate gate_;
};

}  // namespace cairn::door::vfio_user
