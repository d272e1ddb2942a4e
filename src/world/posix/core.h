// SPDX-License-Identifier: Apache-2.0
// CoreEnv: the part of a real core that does not depend on how it waits for I/O.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "base/buffer.h"
#include "base/list.h"
#include "base/rng.h"
#include "env/env.h"
#include "env/sharing.h"
#include "env/world.h"
#include "task/cancel.h"
#include "task/ready.h"
#include "task/timer.h"
#include "world/posix/fd.h"
#include "world/posix/governor.h"
#include "world/posix/mailbox.h"
#include "world/posix/nap.h"
#include "world/posix/spin.h"
#include "world/posix/watch.h"

namespace cairn::posix {

class CoreEnv;

// What the cores of one world know of each other. Outlives them.
struct Neighbours {
  explicit Neighbours(size_t count);
  // Wakes every core. From any thread and from signal handlers.
  void wake_all();

  std::vector<std::atomic<CoreEnv*>> cores;
  std::vector<Fd> signals;  // one event descriptor per core
  std::atomic<bool> stop_requested = false;
  std::atomic<bool> ended = false;
};

// Keeps the last events of one core.
class RingTrace final : public env::Trace {
 public:
  static constexpr size_t kEvents = 4096;
  RingTrace(const task::Timers& clock, bool enabled) : clock_(clock) { enabled_ = enabled; }
  // The events still known, oldest first.
  std::vector<env::TraceEvent> events() const;

 private:
  void write(const char* what, uint64_t a, uint64_t b) override;
  const task::Timers& clock_;
  std::vector<env::TraceEvent> ring_;
  uint64_t count_ = 0;
};

// One thread's world: clock, timers, mailbox, ready queue and the loop that turns them. A back end
// derives from it, adds streams and disks, and says how to wait. Made, run and destroyed on its own
// thread; only put() is for others.
class CoreEnv : public env::Env,
                public env::Sharing,
                public env::Connection::Owner,
                public env::Descriptor::Owner {
 public:
  CoreEnv(CoreId id, Neighbours& neighbours, const env::WorldOptions& options);
  ~CoreEnv() override;

  // Turns until the world has ended. On core 0 that is when `program` is done.
  void run(const env::Program* program);

  // From any thread.
  void put(env::Message& message);

  // Nothing else is ready to run on this core.
  bool is_quiet() const { return ready_.empty(); }
  // To be told of each call that moves data or waits.
  void count_system_call() { ++kernel_calls_.calls; }
  // And of each send that a call carries together with others.
  void count_send() { ++kernel_calls_.sends; }
  // Bytes that came in by a stream.
  void count_received(size_t bytes) { received_ += bytes; }
  env::KernelCalls kernel_calls() const override { return kernel_calls_; }

  Time now() const override { return now_; }
  void arm(task::Timer& timer, Time when) override { wheel_.arm(timer, when, this); }
  void disarm(task::Timer& timer) override { wheel_.disarm(timer); }
  CoreId core() const override { return id_; }
  uint32_t core_count() const override { return static_cast<uint32_t>(neighbours_.cores.size()); }
  WallTime wall_now() const override;
  Rng& rng() override { return rng_; }
  void fill_secret(MutableBytes bytes) override;
  BufferPool& buffers() override { return buffers_; }
  env::Trace& trace() override { return trace_; }
  task::CancelToken stop_token() override { return stop_.token(); }
  Result<std::unique_ptr<env::Memory>> map_memory(uint64_t size, env::MemoryPages pages) override;
  void post(CoreId to, env::Message& message) override;

  Result<env::Descriptor> make_shared_memory(uint64_t size) override;
  Result<std::unique_ptr<env::SharedMemory>> map_shared(const env::Descriptor& descriptor,
                                                        const env::SharedRange& range) override;
  Result<env::Descriptor> make_signal() override;
  Result<std::unique_ptr<env::Signal>> open_signal(const env::Descriptor& descriptor) override;
  Result<env::Descriptor> duplicate(const env::Descriptor& descriptor) override;
  Result<std::unique_ptr<env::LocalStream>> open_local(env::Connection connection) override;
  Result<std::unique_ptr<env::LocalStream>> open_local(env::Descriptor end) override;
  Result<std::pair<env::Descriptor, env::Descriptor>> make_local_pair() override;
  void add_poller(env::Poller& poller) override;
  void remove_poller(env::Poller& poller) override;
  env::Descriptor descriptor(Fd fd) { return {this, fd.take()}; }

 protected:
  // Starts what was queued, takes completions; blocks until `until` at most, or until something
  // comes, but not at all when `until` is not in the future (Time{0}: just look).
  virtual void turn(Time until) = 0;
  // The same, but until some events have come, or `until` though none has.
  virtual void gather(Time until, unsigned events) = 0;
  // Gives back whatever the kernel still holds; called after the last task.
  virtual void drain() = 0;
  // Accepts and connects make one of these; closing needs no core.
  void close_connection(int64_t handle) override;
  void close_descriptor(int64_t handle) override;
  // `user` outlives the watch.
  virtual Result<std::unique_ptr<Watch>> make_watch(SharedFd fd, Watch::User& user) = 0;
  virtual std::unique_ptr<EventRaiser> make_raiser(SharedFd fd) = 0;
  // Whether somebody has to be looked at all the time.
  bool has_pollers() const { return !pollers_.empty(); }

  // Readable when another thread has something; the back end watches it and then takes it.
  int signal_fd() const { return neighbours_.signals[id_.value()].get(); }
  void take_signal();
  // Whether a core without work ever looks for some instead of sleeping.
  bool spins() const { return spin_.is_on(); }

 private:
  friend class StreamCall;
  void run_messages();
  bool take_nap();
  void govern();
  bool poll();
  Result<std::unique_ptr<env::LocalStream>> open_local(Fd socket);
  void refresh_clock();

  CoreId id_;
  Neighbours& neighbours_;
  Spin spin_;
  Nap nap_;
  Governor governor_;
  uint64_t received_ = 0;
  bool time_calls_;
  env::KernelCalls kernel_calls_;
  Mailbox mailbox_;
  List<env::Poller, env::Poller> pollers_;
  uint32_t poller_count_ = 0;
  task::ReadyQueue ready_;
  Time now_;
  task::TimerWheel wheel_;
  task::CancelSource stop_;
  Rng rng_;
  BufferPool buffers_;
  RingTrace trace_;
};

// While it exists, its core is in a call that sends or receives and does nothing else.
class StreamCall {
 public:
  enum class Kind : uint8_t { kSend, kReceive };
  StreamCall(CoreEnv& core, Kind kind);
  ~StreamCall();
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

 private:
  CoreEnv& core_;
  Kind kind_;
  Time begin_;
};

}  // namespace cairn::posix
