// SPDX-License-Identifier: Apache-2.0
// Driver: a virtual machine monitor and the block driver of its guest in one, without a guest. It
// shares memory with a server, builds virtqueues there and uses the drive; when the server goes, it
// connects again as QEMU does, and requests in flight complete then. For tests and measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/vhost_user/driver_messages.h"
#include "door/vhost_user/driver_ring.h"
#include "door/vhost_user/virtio_format.h"
#include "door/vhost_user/wire_format.h"
#include "env/env.h"
#include "env/sharing.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::door::vhost_user {

struct DriverOptions {
  bool is_packed = false;
  bool has_event_index = true;
  bool has_indirect = true;
  bool has_inflight = true;
  uint16_t queue_size = 128;
  size_t queues = 1;
  size_t depth = 16;               // requests of a queue at once
  size_t request_max = 64 * 1024;  // bytes of data
};

// On one core. Closed before it is destroyed.
class Driver {
 public:
  Driver(env::Env& env, env::Sharing& sharing, const DriverOptions& options)
      : env_(env), sharing_(sharing), options_(options) {}

  // Makes the memory and the signals. Once, first. Errors as Sharing's.
  Result<void> prepare();
  // Negotiates and starts the queues; again after the server has gone. Errors: kUnreachable,
  // kReset, kClosed, kInvalid (the server refused).
  task::Task<Result<void>> connect(env::Address at, task::CancelToken token);
  // Until the connection has ended; what the server says unasked is dropped.
  task::Task<void> until_gone(task::CancelToken token);
  // Ends the connection without a word, as one that is killed does.
  void hang_up();
  // Stops the queues as a guest that shuts down does, and ends the connection. Nothing is in
  // flight.
  task::Task<Result<void>> leave(task::CancelToken token);
  // Nothing is in flight, or never will be: those who wait are told kClosed.
  task::Task<void> close();

  // What the guest asks of the drive; at most request_max bytes. Waits across connections. The
  // result is the device's; kClosed, kCancelled, kTimedOut: nobody knows.
  task::Task<Result<BlkStatus>> read(uint64_t sector, MutableBytes into, task::CancelToken token,
                                     size_t queue = 0);
  task::Task<Result<BlkStatus>> write(uint64_t sector, Bytes from, task::CancelToken token,
                                      size_t queue = 0);
  task::Task<Result<BlkStatus>> call(BlkType type, uint64_t sector, Bytes out, MutableBytes in,
                                     task::CancelToken token, size_t queue = 0);

  const BlkConfig& config() const { return config_; }
  task::Task<Result<BlkConfig>> read_config(task::CancelToken token);
  task::Task<Result<void>> set_writeback(bool writeback, task::CancelToken token);
  uint64_t features() const { return features_; }
  // A message as it is, with an answer if the server was asked for one.
  task::Task<Result<uint64_t>> send(Request request, Bytes payload,
                                    const env::Descriptor* descriptor, task::CancelToken token) {
    return messages_.send(request, payload, descriptor, token);
  }

  // The guest's memory, for those who want to spoil it.
  MutableBytes memory() const { return memory_->bytes(); }
  // Where servers note what is in flight; after the first connect().
  const env::Descriptor& inflight() const { return inflight_hold_; }
  DriverRing& ring(size_t queue) { return *queues_[queue]->ring; }
  void kick(size_t queue) { queues_[queue]->kick->raise(); }

 private:
  struct Slot {
    task::Event done;
    bool is_out = false;
  };
  struct GuestQueue {
    explicit GuestQueue(size_t depth) : free(depth) {}
    std::unique_ptr<DriverRing> ring;
    env::Descriptor kick_hold;
    env::Descriptor call_hold;
    std::unique_ptr<env::Signal> kick;
    std::unique_ptr<env::Signal> call;
    std::vector<std::unique_ptr<Slot>> slots;
    std::vector<size_t> free_slots;
    task::Semaphore free;
    uint64_t ring_offset = 0;
    uint64_t slots_offset = 0;
    std::optional<uint32_t> base;  // as told when it was stopped
  };

  task::Task<void> listen(GuestQueue& queue);
  void complete(GuestQueue& queue);
  size_t slot_room() const;
  void add(GuestQueue& queue, size_t slot, BlkHeader header, Bytes out, MutableBytes in);

  task::Task<Result<void>> negotiate(task::CancelToken token);
  task::Task<Result<void>> share_memory(task::CancelToken token);
  task::Task<Result<void>> share_inflight(task::CancelToken token);
  task::Task<Result<void>> start_queue(size_t index, task::CancelToken token);

  env::Env& env_;
  env::Sharing& sharing_;
  const DriverOptions options_;
  env::Descriptor memory_hold_;
  std::unique_ptr<env::SharedMemory> memory_;
  env::Descriptor inflight_hold_;
  InflightArea inflight_{};
  std::vector<std::unique_ptr<GuestQueue>> queues_;
  DriverMessages messages_;
  uint64_t features_ = 0;
  BlkConfig config_{};
  bool has_ended_ = false;
  task::CancelSource ending_;
  task::Gate gate_;
};

}  // namespace cairn::door::vhost_user
