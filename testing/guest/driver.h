// SPDX-License-Identifier: Apache-2.0
// Driver: what a guest's operating system has, in small: it brings an NVMe controller up, makes
// queues in its memory, rings doorbells and takes completions. For tests and benchmarks; it runs on
// a device directly or through a client of the protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "env/env.h"
#include "nvme/format/command_format.h"
#include "nvme/format/identify_controller_format.h"
#include "nvme/format/property_format.h"
#include "task/task.h"
#include "testing/guest/driver_queue.h"

namespace cairn::door::vfio_user {

// How a driver reaches its device.
class DriverAccess {
 public:
  // Registers: bytes of BAR0.
  virtual task::Task<Result<void>> read(uint64_t offset, MutableBytes into) = 0;
  virtual task::Task<Result<void>> write(uint64_t offset, Bytes from) = 0;
  // The page of doorbells; empty: ring() brings each.
  virtual MutableBytes doorbells() = 0;
  virtual void ring(Doorbell doorbell, uint32_t value) = 0;

 protected:
  ~DriverAccess() = default;
};

struct DriverOptions {
  uint16_t admin_entries = 32;
  uint16_t queues = 1;    // pairs, each with the vector of its number
  uint16_t entries = 64;  // of each
  bool interrupts = true;
  bool shadow = false;           // doorbells in guest memory, if the device can
  uint8_t page_size = 0;         // CC.MPS
  Duration step_timeout = 30_s;  // for the device, at each step
  Duration look_every = 1_us;    // while waiting for one command
};

// On one core. What it is given outlives it.
class Driver {
 public:
  // Pages of `memory` at its beginning are the driver's; see data().
  Driver(env::Env& env, DriverAccess& access, const DriverMemory& memory,
         const DriverOptions& options);

  // Bytes at the beginning that start() takes for queues.
  uint64_t own_bytes() const;
  // Memory that is the caller's, for data.
  DriverMemory data() const;

  // Resets the controller, enables it and makes the queues. kTimedOut: CSTS does not change; kIo:
  // CSTS.CFS is set; kInvalid: a command failed, detail() is its status; kUnsupported: the
  // controller cannot do what the options ask.
  task::Task<Result<void>> start();
  // CC.SHN and CSTS.SHST; then CC.EN 0.
  task::Task<Result<void>> stop();
  // CC.EN 0 until CSTS.RDY falls; queues are forgotten.
  task::Task<Result<void>> disable();

  // By number, from 1.
  DriverQueue& queue(uint16_t number) { return *queues_[number]; }
  DriverQueue& admin_queue() { return *queues_[0]; }
  const nvme::IdentifyController& identity() const { return identity_; }

  // One command and its completion, which nobody else takes meanwhile. kTimedOut.
  task::Task<Result<nvme::Cqe>> execute(DriverQueue& queue, nvme::Sqe sqe);
  task::Task<Result<nvme::Cqe>> admin(nvme::Sqe sqe) { return execute(admin_queue(), sqe); }

  // An entry for `bytes` at an address of the guest, named by PRPs; those that need a list have it
  // in `list`, which begins a page and is kept until the command has ended.
  static void point(nvme::Sqe& sqe, uint64_t address, uint64_t bytes, const DriverMemory& list,
                    uint32_t page_size = 4096);

  task::Task<Result<uint32_t>> read32(uint64_t offset);
  task::Task<Result<void>> write32(uint64_t offset, uint32_t value);
  task::Task<Result<void>> write64(uint64_t offset, uint64_t value);
  // Until CSTS has these bits so.
  task::Task<Result<void>> wait_status(uint32_t mask, uint32_t value);

 private:
  uint64_t queue_bytes(uint16_t entries) const;
  void place_queues();
  task::Task<Result<void>> must(nvme::Sqe sqe);
  task::Task<Result<void>> identify();
  task::Task<Result<void>> make_queue(uint16_t number);
  uint32_t configuration() const;

  env::Env& env_;
  DriverAccess& access_;
  DriverMemory memory_;
  DriverOptions options_;
  DriverDoorbells doorbells_;
  std::vector<std::unique_ptr<DriverQueue>> queues_;
  DriverMemory page_;    // for data of the driver's own
  DriverMemory shadow_;  // two pages
  nvme::IdentifyController identity_;
  uint16_t next_id_ = 0;
};

}  // namespace cairn::door::vfio_user
