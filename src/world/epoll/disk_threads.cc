// SPDX-License-Identifier: Apache-2.0
#include "world/epoll/disk_threads.h"

#include <pthread.h>

#include <csignal>

#include "base/check.h"

namespace cairn::epoll {

DiskThreads::DiskThreads(posix::CoreEnv& core) : core_(core) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

DiskThreads::~DiskThreads() {
  {
    const std::lock_guard lock(mutex_);
    CHECK(waiting_.empty(), "no disk operation is in flight at the end");
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void DiskThreads::put(DiskJob& job) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(job);
  }
  changed_.notify_one();
}

bool DiskThreads::withdraw(DiskJob& job) {
  const std::lock_guard lock(mutex_);
  if (!job.is_linked()) return false;
  job.unlink();
  return true;
}

void DiskThreads::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    DiskJob* job = waiting_.pop_front();
    if (job == nullptr) return;
    lock.unlock();
    job->work();
    core_.put(*job);
    lock.lock();
  }
}

}  // namespace cairn::epoll
