// SPDX-License-Identifier: Apache-2.0
// Core: the Env of one core of a simulated process. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/list.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/address.h"
#include "env/disk.h"
#include "env/env.h"
#include "env/sharing.h"
#include "env/stream.h"
#include "env/trace.h"
#include "task/cancel.h"
#include "task/ready.h"
#include "task/timer.h"
#include "world/sim/event_queue.h"
#include "world/sim/process.h"

namespace cairn::sim {

class Core final : public env::Env, public env::Sharing {
 public:
  Core(Process& process, uint32_t index, uint64_t seed);
  ~Core() override;

  // Env.
  Time now() const override;
  void arm(task::Timer& timer, Time when) override;
  void disarm(task::Timer& timer) override;
  CoreId core() const override { return CoreId(origin_.core); }
  uint32_t core_count() const override { return process_.core_count(); }
  WallTime wall_now() const override;
  Rng& rng() override { return rng_; }
  void fill_secret(MutableBytes bytes) override { rng_.fill(bytes); }
  BufferPool& buffers() override { return buffers_; }
  env::Trace& trace() override { return trace_; }
  task::CancelToken stop_token() override { return stop_.token(); }
  using Env::listen;
  Result<std::unique_ptr<env::Listener>> listen(const env::Address& at,
                                                const env::ListenOptions& options) override;
  std::unique_ptr<env::Stream> open(env::Connection connection) override;
  Result<std::unique_ptr<env::Disk>> open_disk(const env::DiskOptions& options) override;
  void post(CoreId to, env::Message& message) override;

  // Sharing.
  Result<env::Descriptor> make_shared_memory(uint64_t size) override;
  Result<std::unique_ptr<env::SharedMemory>> map_shared(const env::Descriptor& descriptor,
                                                        const env::SharedRange& range) override;
  Result<env::Descriptor> make_signal() override;
  Result<std::unique_ptr<env::Signal>> open_signal(const env::Descriptor& descriptor) override;
  Result<env::Descriptor> duplicate(const env::Descriptor& descriptor) override;
  using Sharing::open_local;
  Result<std::unique_ptr<env::LocalStream>> open_local(env::Connection connection) override;
  void add_poller(env::Poller& poller) override;
  void remove_poller(env::Poller& poller) override;

  // For the simulator.
  Process& process() { return process_; }
  Machine& machine() { return process_.machine(); }
  const Origin& origin() const { return origin_; }
  // True when the code that runs now is this core's.
  bool is_current() const { return task::ReadyQueue::current() == &ready_; }
  bool is_idle() const { return ready_.empty(); }
  size_t timer_count() const { return timer_count_; }

  // Completes an operation of this core; its coroutine runs in the core's next turn.
  template <class Operation, class Outcome>
  void complete(Operation& operation, Outcome&& outcome) {
    operation.complete(std::forward<Outcome>(outcome));
    wake();
  }
  // There is, or may be, something in the ready queue.
  void wake();
  // Runs `function()` as this core, then all that is ready.
  template <class F>
  void run_code(F&& function) {
    if (is_running_) return function();
    process_.enter_code();
    is_running_ = true;
    {
      const task::ReadyQueue::Scope scope(ready_);
      function();
    }
    const bool is_busy = ready_.run(kTurnMax) == kTurnMax;
    is_running_ = false;
    if (is_busy) note_busy_turn();
    if (!ready_.empty() || (is_stop_wanted_ && !stop_.requested())) wake();
    process_.leave_code();
  }
  // A late turn whose work another event has done meanwhile; the process has ended.
  void drop_idle_turn() {
    if (ready_.empty()) turn_.cancel();
  }
  // Requests the stop token in this core's next turn.
  void request_stop();
  // The same, and runs that turn.
  void stop_now();
  // The process died: nobody listens to its traces, nothing is held any more.
  void fall_silent();
  void hold(EventQueue* held) { origin_.held = held; }

 private:
  struct TimerEvent;
  struct MessageEvent;
  class CoreTrace final : public env::Trace {
   public:
    explicit CoreTrace(Core& core) : core_(core) { enabled_ = true; }
    void fall_silent() { enabled_ = false; }

   private:
    void write(const char* what, uint64_t a, uint64_t b) override;
    Core& core_;
  };

  // A turn that runs longer lets others of the same time go first.
  static constexpr size_t kTurnMax = 256;
  // And so many of them without time passing are a program that spins.
  static constexpr uint32_t kBusyTurnsMax = 5000;

  // How often pollers are looked at.
  static constexpr Duration kPollInterval = 1_us;

  static void on_turn(Event& event);
  static void on_poll(Event& event);
  static void on_timer(Event& event);
  static void on_message(Event& event);
  static bool on_buggify(Env& env, const char* site);
  static const EventKind kTurn;
  static const EventKind kPoll;
  static const EventKind kTimer;
  static const EventKind kMessage;

  void start_connect(env::ConnectOp& op) override;
  void cancel_connect(env::ConnectOp& op) override;

  void note_busy_turn();

  void schedule_poll();

  struct CoreEvent : Event {
    CoreEvent(const EventKind& kind, Core& owner);
    Core& core;
  };

  Process& process_;
  Origin origin_;
  Rng rng_;
  Rng buggify_rng_;
  task::ReadyQueue ready_;
  BufferPool buffers_;
  CoreTrace trace_;
  task::CancelSource stop_;
  CoreEvent turn_;
  CoreEvent poll_;
  List<env::Poller, env::Poller> pollers_;
  bool is_running_ = false;
  bool is_stop_wanted_ = false;
  uint32_t busy_turns_ = 0;
  Time busy_at_;
  size_t timer_count_ = 0;
  std::vector<std::unique_ptr<TimerEvent>> timers_;
  TimerEvent* free_timers_ = nullptr;
  // Messages to this core, and when the last one from each core arrives.
  std::vector<std::unique_ptr<MessageEvent>> messages_;
  MessageEvent* free_messages_ = nullptr;
  std::vector<Time> last_arrival_;
};

}  // namespace cairn::sim
