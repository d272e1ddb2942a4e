// SPDX-License-Identifier: Apache-2.0
// Device: everything a front end sets up and changes, without the socket: features, memory,
// virtqueues, the log, and where what is in flight is noted. One per front end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "door/vhost_user/blk_disk.h"
#include "door/vhost_user/dirty_log.h"
#include "door/vhost_user/front_memory.h"
#include "door/vhost_user/loss_note.h"
#include "door/vhost_user/message.h"
#include "door/vhost_user/options.h"
#include "door/vhost_user/vring.h"
#include "env/env.h"
#include "env/sharing.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::door::vhost_user {

// On one core. Messages come one at a time; stopped before it is destroyed. An error means that the
// message was refused, and says why; the device is as it was, unless the message is about memory.
class Device {
 public:
  // All outlive it.
  Device(env::Env& env, env::Sharing& sharing, BlkDisk& disk, const DeviceOptions& options);

  uint64_t features() const;
  Result<void> set_features(uint64_t features);
  BlkConfig config() const { return disk_.config(writeback_); }
  Result<void> set_config(const Config& config);
  uint64_t status() const { return status_; }
  task::Task<Result<void>> set_status(uint64_t status);

  task::Task<Result<void>> set_memory(MemoryTable table, std::span<env::Descriptor> descriptors);
  Result<void> add_memory(const MemoryRegion& region, const env::Descriptor& descriptor);
  task::Task<Result<void>> remove_memory(MemoryRegion region);
  Result<void> set_log(const LogArea& area, const env::Descriptor& descriptor);

  // The buffer for what is in flight, and its measures.
  struct Inflight {
    env::Descriptor memory;
    InflightArea area{};
  };
  Result<Inflight> make_inflight(const InflightArea& wanted);
  Result<void> set_inflight(const InflightArea& area, const env::Descriptor& descriptor);

  Result<void> set_size(const VringState& state);
  Result<void> set_base(const VringState& state);
  Result<void> set_address(const VringAddress& address);
  task::Task<Result<void>> set_enabled(VringState state);
  task::Task<Result<void>> set_kick(VringSignal signal, const env::Descriptor& descriptor);
  Result<void> set_call(const VringSignal& signal, const env::Descriptor& descriptor);
  Result<void> set_error(const VringSignal& signal, const env::Descriptor& descriptor);
  // Stops the virtqueue; where another device goes on.
  task::Task<Result<VringState>> stop_vring(VringState state);

  // No virtqueue runs until it is enabled again.
  task::Task<void> disable();
  // Everything as it was at first, but for the memory.
  task::Task<void> reset();
  // Stops all virtqueues, when what they took is published, and flushes what the guest did not: who
  // serves it next may be another process. The memory goes.
  task::Task<void> stop();
  // stop() is to end soon: what is in flight stays so, for whoever comes next.
  void abandon();

 private:
  Result<Vring*> vring(uint32_t index);
  Result<std::unique_ptr<env::Signal>> open(const VringSignal& signal,
                                            const env::Descriptor& descriptor);
  Result<RingOptions> ring_options(size_t index);
  Result<void> start_if_ready(size_t index);
  task::Task<void> stop(Vring& vring);
  // Every queue that runs, around a change of the memory.
  task::Task<void> pause();
  Result<void> go_on();
  void choose_durable();
  void note_losses();
  task::Task<void> flush_unflushed();

  env::Env& env_;
  env::Sharing& sharing_;
  BlkDisk& disk_;
  const DeviceOptions options_;
  FrontMemory memory_;
  DirtyLog log_;
  std::unique_ptr<env::SharedMemory> inflight_;
  InflightArea inflight_area_{};
  LossNote losses_;
  uint64_t features_ = 0;
  uint64_t status_ = 0;
  bool writeback_ = true;
  bool durable_ = false;  // writes, when they complete
  bool is_abandoned_ = false;
  task::CancelSource abandoned_;
  std::array<Vring, kQueuesMax> vrings_;
};

}  // namespace cairn::door::vhost_user
