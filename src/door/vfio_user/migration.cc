// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/migration.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "door/vfio_user/limits.h"
#include "door/vfio_user/migration_format.h"

namespace cairn::door::vfio_user {

namespace {

bool is_state(DeviceState state) {
  return state == DeviceState::kStop || state == DeviceState::kRunning ||
         state == DeviceState::kStopCopy || state == DeviceState::kResuming;
}

}  // namespace

task::Task<Result<void>> Migration::change(DeviceState to) {
  if (!is_state(to)) co_return fail(Errc::kInvalid, "a state that devices do not have");
  if (state_ == DeviceState::kError) {
    co_return fail(Errc::kInvalid, "the device is in error: reset it");
  }
  if (to == state_) co_return Result<void>{};
  if (state_ != DeviceState::kStop && to != DeviceState::kStop) {
    const Result<void> stopped = co_await step(DeviceState::kStop);
    if (!stopped) co_return stopped;
  }
  Result<void> done = co_await step(to);
  co_return done;
}

// From or to stopped.
task::Task<Result<void>> Migration::step(DeviceState to) {
  if (state_ == DeviceState::kRunning) co_await parts_.device.pause();
  if (state_ == DeviceState::kResuming) {
    const Result<void> taken = take_over();
    data_.clear();
    if (!taken) {
      state_ = DeviceState::kError;
      co_return taken;
    }
  }
  if (state_ == DeviceState::kStopCopy) data_.clear();
  if (to == DeviceState::kStopCopy) {
    const Result<void> saved = save();
    if (!saved) co_return saved;
  }
  state_ = to;
  if (to == DeviceState::kRunning) {
    parts_.device.resume();
    parts_.interrupts.look_again();
  }
  co_return Result<void>{};
}

Result<void> Migration::save() {
  const Result<std::vector<std::byte>> device = parts_.device.save();
  if (!device) return fail(device.error());
  StateHeader header;
  header.device_size = static_cast<uint32_t>(device->size());
  data_.assign(sizeof(header), std::byte{0});
  const auto append = [this](Bytes bytes) {
    data_.insert(data_.end(), bytes.begin(), bytes.end());
  };
  append(parts_.config.state());
  std::vector<std::byte> interrupts(Interrupts::kStateSize);
  parts_.interrupts.save(interrupts);
  append(interrupts);
  append(parts_.doorbells);
  append(*device);
  header.checksum = crc32c(Bytes(data_).subspan(sizeof(header)));
  store(data_, header);
  read_ = 0;
  return {};
}

Result<void> Migration::take_over() {
  if (data_.empty()) return {};  // nothing was written: it goes on as it was
  if (data_.size() < sizeof(StateHeader)) return fail(Errc::kCorrupt, "a device state cut short");
  const auto header = load<StateHeader>(data_);
  const StateHeader ours;
  if (header.magic != ours.magic || header.version != ours.version) {
    return fail(Errc::kCorrupt, "no device state, or one of another version of Cairn",
                static_cast<int>(header.version));
  }
  Bytes rest = Bytes(data_).subspan(sizeof(header));
  const uint64_t fixed = uint64_t{ours.config_size} + ours.interrupts_size + ours.doorbells_size;
  if (header.config_size != ours.config_size || header.interrupts_size != ours.interrupts_size ||
      header.doorbells_size != ours.doorbells_size || rest.size() != fixed + header.device_size) {
    return fail(Errc::kCorrupt, "a device state of another size than it says");
  }
  if (crc32c(rest) != header.checksum) return fail(Errc::kCorrupt, "a device state was changed");
  const auto take = [&rest](size_t size) {
    const Bytes front = rest.first(size);
    rest = rest.subspan(size);
    return front;
  };
  const Bytes config = take(ours.config_size);
  const Bytes interrupts = take(ours.interrupts_size);
  std::ranges::copy(take(ours.doorbells_size), parts_.doorbells.begin());
  const Result<void> loaded = parts_.device.load(rest);
  if (!loaded) return fail(Errc::kCorrupt, loaded.error().what(), loaded.error().detail());
  parts_.config.load(config);
  parts_.interrupts.load(interrupts);
  return {};
}

Result<Bytes> Migration::read(size_t size_max) {
  if (state_ != DeviceState::kStopCopy) {
    return fail(Errc::kInvalid, "a device state is read while it is copied out");
  }
  const Bytes next = Bytes(data_).subspan(read_);
  const Bytes taken = next.first(std::min(size_max, next.size()));
  read_ += taken.size();
  return taken;
}

Result<void> Migration::write(Bytes bytes) {
  if (state_ != DeviceState::kResuming) {
    return fail(Errc::kInvalid, "a device state is written while it resumes");
  }
  if (bytes.size() > kStateMax - data_.size()) {
    return fail(Errc::kLimit, "more bytes than a device state has");
  }
  data_.insert(data_.end(), bytes.begin(), bytes.end());
  return {};
}

void Migration::reset() {
  state_ = DeviceState::kRunning;
  data_.clear();
}

}  // namespace cairn::door::vfio_user
