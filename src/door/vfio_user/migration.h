// SPDX-License-Identifier: Apache-2.0
// Migration: a device's states as a client that moves it sees them, and the bytes in between.
//
//   running <-> stopped <-> copying out (its state can be read)
//                       <-> resuming    (a state is written, and taken over at its end)
//
// Other changes go through stopped. A state that cannot be taken over leaves the device in error,
// which a reset ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/vfio_user/config_space.h"
#include "door/vfio_user/device.h"
#include "door/vfio_user/interrupts.h"
#include "door/vfio_user/wire_format.h"
#include "task/task.h"

namespace cairn::door::vfio_user {

// On one core. All it is given outlives it.
class Migration {
 public:
  struct Parts {
    Device& device;
    ConfigSpace& config;
    Interrupts& interrupts;
    MutableBytes doorbells;
  };
  explicit Migration(const Parts& parts) : parts_(parts) {}

  DeviceState state() const { return state_; }
  bool is_running() const { return state_ == DeviceState::kRunning; }

  // Done when the device is in that state. kInvalid: there is no such state or no way to it, and
  // nothing has changed; kCorrupt: what was written is no state, and the device is in error now;
  // others of Device::save.
  task::Task<Result<void>> change(DeviceState to);

  // The next bytes of the state, at most so many, fewer only at the end. kInvalid: not now.
  Result<Bytes> read(size_t size_max);
  // kInvalid: not now; kLimit: more than any state has.
  Result<void> write(Bytes bytes);

  // The device was reset, and runs.
  void reset();

 private:
  task::Task<Result<void>> step(DeviceState to);
  Result<void> save();
  Result<void> take_over();

  Parts parts_;
  DeviceState state_ = DeviceState::kRunning;
  std::vector<std::byte> data_;
  size_t read_ = 0;  // of data_
};

}  // namespace cairn::door::vfio_user
