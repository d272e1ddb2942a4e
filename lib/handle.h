// SPDX-License-Identifier: Apache-2.0
// Handle: a drive, the world that serves it on a thread of its own, and the way in and out for all
// other threads.
//
// Requests go in as messages to the world's core; each lives in a slot of a fixed table, and as
// many are under way or done and not taken as there are slots, so that the way in and out is
// bounded. Completions come out through a queue behind the one lock; the event descriptor, once
// somebody asked for it, is readable while the queue holds any.
#pragma once

#include <cairn.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "drive/drive.h"
#include "env/env.h"
#include "env/world.h"
#include "lib/fork_flag.h"
#include "server/open/open_stack.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "world/posix/core.h"
#include "world/posix/fd.h"

namespace cairn::capi {

inline constexpr uint32_t kDepth = 1024;
inline constexpr uint32_t kDepthMax = 65536;
// The largest read, write or compare; the drive gets it in parts that it can take.
inline constexpr uint64_t kTransferMax = uint64_t{256} << 20;

// Why there is no handle: an errno, positive, and a sentence.
struct Refusal {
  int error = 0;
  std::string text;
};

struct HandleOptions {
  env::WorldOptions world;
  uint32_t io = CAIRN_IO_AUTO;
  uint32_t depth = kDepth;
  bool report_resize = false;
};

class Handle {
 public:
  static std::expected<std::unique_ptr<Handle>, Refusal> open(const char* stack,
                                                              const HandleOptions& options);
  // Waits for what is under way. In the child of a fork, forgets everything instead.
  static void close(std::unique_ptr<Handle> handle);
  ~Handle();

  // False in the child of a fork: the thread that serves the drive is not there.
  bool is_here() const;

  // All from any thread.
  drive::Geometry geometry();
  // How many were taken; the Error of the first.
  Result<uint32_t> submit(const cairn_request* requests, uint32_t count);
  Result<void> run(const cairn_request& request);
  Result<void> resize(uint64_t bytes);
  // How many completions were taken, after waiting for the first: 0 ms not at all, -1 for ever.
  uint32_t wait(cairn_completion* into, uint32_t max, int timeout_ms);
  int event_fd();

 private:
  // One request on its way.
  struct Slot : env::Message {
    Slot() : Message(&Handle::start) {}
    Handle* handle = nullptr;
    drive::Request request;
    std::vector<MutableBytes> pieces;
    uint64_t new_bytes = 0;  // of a resize
    void* tag = nullptr;
    uint32_t kind = 0;
    bool is_resize = false;
    // Who waits for it; null: its completion goes to the queue.
    std::optional<Result<void>>* waiter = nullptr;
  };
  struct Close : env::Message {
    Close() : Message(&Handle::on_close) {}
    Handle* handle = nullptr;
  };

  Handle(std::unique_ptr<server::StackPlan> plan, std::unique_ptr<env::World> world,
         const HandleOptions& options, posix::Fd event, ForkFlag here);

  // On the world's thread.
  task::Task<void> live(env::Env& env);
  static void start(env::Message& message, env::Env& env);
  static void on_close(env::Message& message, env::Env& env);
  // Whether it is more than the drive takes at once.
  bool needs_parts(const Slot& slot) const;
  task::Task<void> serve(Slot& slot);
  task::Task<Result<void>> run_parts(const Slot& slot);
  task::Task<Result<void>> run_part(const Slot& slot, uint64_t first, uint64_t blocks);
  task::Task<void> watch_size(env::Env& env, task::CancelToken token);
  void tell_opened(std::optional<Refusal> refusal);
  void finish(Slot& slot, const Result<void>& done);

  Result<void> fill(Slot& slot, const cairn_request& request) const;
  Result<void> run_slot(Slot& slot);
  // With the lock held.
  Slot* take_slot();  // null: all are under way, or done and not taken
  void push(const cairn_completion& completion);
  void note_size();

  const bool report_resize_;
  std::unique_ptr<server::StackPlan> plan_;
  std::unique_ptr<env::World> world_;
  posix::Fd event_;
  ForkFlag here_;

  // The world's thread alone.
  std::unique_ptr<drive::Drive> drive_;
  task::Gate gate_;
  task::Event closing_;
  Close close_;

  std::mutex lock_;  // guards what follows
  std::condition_variable changed_;
  posix::CoreEnv* core_ = nullptr;
  bool is_opened_ = false;  // or refused
  std::optional<Refusal> refusal_;
  drive::Geometry geometry_;
  const std::unique_ptr<Slot[]> slots_;
  const uint32_t depth_;
  std::vector<Slot*> free_;
  std::deque<cairn_completion> done_;
  uint32_t waiters_ = 0;
  bool wants_event_ = false;
  bool has_resized_ = false;  // a completion that says so is in the queue

  std::thread thread_;
};

}  // namespace cairn::capi
