// SPDX-License-Identifier: Apache-2.0
// DiskThreads: helpers that make blocking file calls on behalf of one core.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/list.h"
#include "env/env.h"
#include "world/posix/core.h"

namespace cairn::epoll {

// One piece of blocking work. Lives at the core until it comes back as a message.
class DiskJob : public ListHook<>, public env::Message {
 public:
  using Message::Message;
  // On a helper thread. Touches nothing the core is using.
  virtual void work() = 0;

 protected:
  ~DiskJob() = default;
};

// The core puts jobs and gets each back as a message. Destroyed when no job is out.
class DiskThreads {
 public:
  static constexpr int kThreads = 4;

  explicit DiskThreads(posix::CoreEnv& core);
  ~DiskThreads();
  DiskThreads(const DiskThreads&) = delete;
  DiskThreads& operator=(const DiskThreads&) = delete;

  void put(DiskJob& job);
  // True: the job had not begun, and will neither begin nor come back.
  bool withdraw(DiskJob& job);

 private:
  void run();

  posix::CoreEnv& core_;
  std::mutex mutex_;
  std::condition_variable changed_;
  List<DiskJob> waiting_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cairn::epoll
