// SPDX-License-Identifier: Apache-2.0
// Device: what a session serves: registers, doorbells and memory of a guest. Configuration space,
// interrupts and messages are the session's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/common/guest_memory.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::door::vfio_user {

// What a device stands on. All of it outlives the device.
struct DeviceParts {
  env::Env& env;
  door::GuestMemory& memory;
  // A page that the client writes to at any time, or the session for it.
  MutableBytes doorbells;
  // Doorbells ring by poll() alone, right after each; otherwise poll() comes again and again.
  bool is_told = false;
  std::function<void(uint16_t vector)> raise;
  // The device was enabled, or commands have ended and more may come: look at it for a while. From
  // anywhere, poll() included.
  std::function<void()> wake;
};

// One client's, on one core; made when the client comes, closed when it goes.
class Device {
 public:
  virtual ~Device() = default;

  // Registers: any bytes below kDoorbellsAt. Those that are none read as zeroes.
  virtual void read(uint64_t offset, MutableBytes into) = 0;
  virtual void write(uint64_t offset, Bytes from) = 0;

  // Looks at doorbells and does what they ask for, without waiting. True: there was something.
  virtual bool poll() = 0;
  // Whether poll() can find anything: false until the guest has enabled the device.
  virtual bool is_enabled() const = 0;

  // Whether commands are in flight: their end brings new ones soon.
  virtual bool is_busy() const = 0;

  // This memory is about to go: what waits for something with pieces of it ends soon.
  virtual void abandon(uint64_t address, uint64_t size) = 0;

  // Tells the memory's write log (GuestMemory::note_write) of all memory that was found for writing
  // and may still be written: that of commands in flight.
  virtual void note_writes() = 0;

  // As after power on; done when nothing is in flight. It ends a pause too.
  virtual task::Task<void> reset() = 0;

  // Done when nothing is in flight and nothing new begins, until resume().
  virtual task::Task<void> pause() = 0;
  virtual void resume() = 0;
  // While paused: what a successor needs. kUnsupported: it cannot be told.
  virtual Result<std::vector<std::byte>> save() = 0;
  // While paused: becomes what saved this. The bytes may be anything; after an error it is as after
  // reset().
  virtual Result<void> load(Bytes state) = 0;

  // Nothing is in flight any more. Then it goes.
  virtual task::Task<void> close() = 0;
};

// Makes the device of a client that has come, on the client's core. An error: the client is turned
// away.
using DeviceMaker = std::function<task::Task<Result<std::unique_ptr<Device>>>(DeviceParts parts)>;

}  // namespace cairn::door::vfio_user
