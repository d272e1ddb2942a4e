// SPDX-License-Identifier: Apache-2.0
// Cores for unit tests of env/ itself: one thread, mailboxes between them, a clock that moves when
// told, and no streams or disks but those a test puts in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/disk.h"
#include "env/env.h"
#include "env/stream.h"
#include "env/trace.h"
#include "task/cancel.h"
#include "task/ready.h"
#include "task/timer.h"

namespace cairn::env {

class TestCores;

class TestEnv final : public Env, private Connection::Owner {
 public:
  TestEnv(TestCores& cores, CoreId core)
      : cores_(cores), core_(core), wheel_(Time{0}), rng_(core.value()), pool_(small_pool()) {}

  Time now() const override { return now_; }
  void arm(task::Timer& timer, Time when) override { wheel_.arm(timer, when, this); }
  void disarm(task::Timer& timer) override { wheel_.disarm(timer); }
  CoreId core() const override { return core_; }
  inline uint32_t core_count() const override;
  WallTime wall_now() const override { return {now_.ns}; }
  Rng& rng() override { return rng_; }
  void fill_secret(MutableBytes bytes) override { rng_.fill(bytes); }
  BufferPool& buffers() override { return pool_; }
  Trace& trace() override { return trace_; }
  task::CancelToken stop_token() override { return stop_.token(); }
  inline void post(CoreId to, Message& message) override;

  using Env::listen;
  Result<std::unique_ptr<Listener>> listen(const Address&, const ListenOptions&) override {
    return fail(Errc::kUnsupported, "listening in a unit test");
  }
  Result<std::unique_ptr<Disk>> open_disk(const DiskOptions&) override {
    return fail(Errc::kUnsupported, "disks in a unit test");
  }
  std::unique_ptr<Stream> open(Connection connection) override {
    connection.take();
    return std::move(next_stream);
  }

  // What the next connect and open give; with none a connect waits until it is cancelled.
  std::unique_ptr<Stream> next_stream;
  std::optional<Error> next_error;
  int connections_closed = 0;

  bool has_mail() const { return !mail_.empty(); }
  // Runs what is due, the messages that are there, and all that becomes ready; true: there was any.
  bool turn() {
    const task::ReadyQueue::Scope scope(ready_);
    const size_t fired = wheel_.advance(now_);
    const std::vector<Message*> messages = std::exchange(mail_, {});
    for (Message* message : messages) message->run(*message, *this);
    const size_t ran = ready_.run(SIZE_MAX);
    return fired + messages.size() + ran > 0;
  }
  void set_now(Time now) { now_ = now; }
  task::ReadyQueue& ready() { return ready_; }

 private:
  struct SilentTrace final : Trace {
    void write(const char*, uint64_t, uint64_t) override {}
  };
  static BufferPoolOptions small_pool() { return {.classes = {{4096, 4}}}; }

  void start_connect(ConnectOp& op) override {
    if (next_error) return op.complete(fail(*next_error));
    if (next_stream) op.complete(Connection(this, 1));
  }
  void cancel_connect(ConnectOp& op) override { op.complete(op.cancelled()); }
  void close_connection(int64_t) override { ++connections_closed; }

  TestCores& cores_;
  CoreId core_;
  task::ReadyQueue ready_;
  task::TimerWheel wheel_;
  Time now_;
  Rng rng_;
  BufferPool pool_;
  SilentTrace trace_;
  task::CancelSource stop_;
  std::vector<Message*> mail_;
};

class TestCores {
 public:
  explicit TestCores(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      envs_.push_back(std::make_unique<TestEnv>(*this, CoreId(i)));
    }
  }
  TestEnv& operator[](uint32_t core) { return *envs_[core]; }
  uint32_t count() const { return static_cast<uint32_t>(envs_.size()); }

  // Starts a task as if on `core`: `start` is called with that core's ready queue current.
  template <class F>
  auto on(uint32_t core, F start) {
    const task::ReadyQueue::Scope scope(envs_[core]->ready());
    return start();
  }
  // Until no core has anything to do.
  void run() {
    bool busy = true;
    while (busy) {
      busy = false;
      for (auto& env : envs_) busy |= env->turn();
    }
  }
  void advance(Duration by) {
    for (auto& env : envs_) env->set_now(env->now() + by);
    run();
  }

 private:
  std::vector<std::unique_ptr<TestEnv>> envs_;
};

uint32_t TestEnv::core_count() const { return cores_.count(); }
void TestEnv::post(CoreId to, Message& message) { cores_[to.value()].mail_.push_back(&message); }

}  // namespace cairn::env
