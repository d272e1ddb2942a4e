// SPDX-License-Identifier: Apache-2.0
// Queue: a virtqueue at work, from the moment it is started until it is stopped. Takes chains,
// serves them side by side, publishes what is done together, and sleeps or looks as it was told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/units.h"
#include "door/common/guest_memory.h"
#include "door/vhost_user/blk_disk.h"
#include "door/vhost_user/dirty_log.h"
#include "door/vhost_user/loss_note.h"
#include "door/vhost_user/options.h"
#include "door/vhost_user/ring.h"
#include "env/env.h"
#include "env/sharing.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::door::vhost_user {

// What the queues of a device share; all of it outlives them.
struct QueueParts {
  env::Env& env;
  env::Sharing& sharing;
  BlkDisk& disk;
  GuestMemory& memory;
  DirtyLog& log;
  LossNote& losses;
  const DeviceOptions& options;
};

// Null: the driver looks by itself.
struct QueueSignals {
  std::unique_ptr<env::Signal> kick;
  std::unique_ptr<env::Signal> call;
  std::unique_ptr<env::Signal> error;
};

// On one core. Stopped before it is destroyed.
class Queue final : private env::Poller {
 public:
  // Whether writes are durable when they complete, may change at any time: `durable` is looked at.
  Queue(const QueueParts& parts, std::unique_ptr<Ring> ring, QueueSignals& signals,
        const bool& durable);

  // Takes what is there already, too. The driver is told once, in case its last call was lost.
  void start();
  // Takes nothing more, and waits until everything that was taken is published: by this process, or
  // by one before it that was killed.
  task::Task<void> stop();
  // What is in flight is to end soon, unpublished: somebody else does it again.
  void abandon() { abandoned_.request(); }
  // The signals that were given have changed; the kick only while stopped.
  void call_changed() { tell(); }

  Ring& ring() { return *ring_; }

 private:
  struct Slot {
    Chain chain;
    BlkRequest request;
    bool is_durable = false;
    LossNote::Mark mark;  // of a flush
  };
  struct WorkMessage : env::Message {
    explicit WorkMessage(Queue& its) : Message(&Queue::on_work), queue(its) {}
    Queue& queue;
  };

  bool poll() override;
  static void on_work(env::Message& message, env::Env& there);
  task::Task<void> listen();
  void wake();
  bool serve();
  void settle();
  void work_later();
  bool serve_one();
  task::Task<void> serve_recovered();
  void begin(Slot& slot);
  task::Task<void> run(Slot& slot);
  BlkDisk::Outcome judged(const Slot& slot, BlkDisk::Outcome outcome);
  void finish(Slot& slot, const BlkDisk::Outcome& outcome);
  void mark_data(const BlkRequest& request, size_t written);
  void publish();
  void tell();
  void break_off();
  bool must_poll() const;
  void start_polling();
  void stop_polling();
  void learn();

  QueueParts parts_;
  std::unique_ptr<Ring> ring_;
  QueueSignals& signals_;
  const bool& durable_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_;
  bool is_stopping_ = false;
  bool is_broken_ = false;
  bool is_polling_ = false;
  bool is_full_ = false;   // chains wait for a slot
  bool has_more_ = false;  // chains wait for the next turn
  bool is_posted_ = false;
  Time last_found_;
  Duration window_;  // how long an adaptive queue looks before it sleeps; see learn()
  WorkMessage work_;
  task::Event finished_;  // a slot is free again
  task::CancelSource stopping_;
  task::CancelSource abandoned_;
  task::Gate gate_;
};

}  // namespace cairn::door::vhost_user
