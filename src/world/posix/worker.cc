// SPDX-License-Identifier: Apache-2.0
#include "world/posix/worker.h"

#include <pthread.h>

#include <csignal>

#include "base/check.h"

namespace cairn::posix {

// Signals are for the cores.
Worker::Worker(CoreEnv& core) : core_(core) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { work_on(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    CHECK(waiting_.empty(), "no call is under way when a worker ends");
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::put(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(job);
  }
  changed_.notify_one();
}

void Worker::work_on() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    Job* job = waiting_.pop_front();
    if (job == nullptr) return;
    lock.unlock();
    job->work();
    core_.put(*job);
    lock.lock();
  }
}

}  // namespace cairn::posix
