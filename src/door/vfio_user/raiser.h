// SPDX-License-Identifier: Apache-2.0
// Raiser: when completions are worth an interrupt (features 08h and 09h of NVMe Base 2.0).
//
// What completes between two calls of flush() makes one interrupt per queue. With coalescing, a
// queue waits for more until there are enough or the first has waited long enough; the admin queue
// and vectors that do not take part never wait.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

#include "base/list.h"
#include "door/vfio_user/completion_queue.h"
#include "env/env.h"
#include "nvme/format/feature_format.h"
#include "task/timer.h"

namespace cairn::door::vfio_user {

// On one core. Queues leave it when they go.
class Raiser {
 public:
  Raiser(env::Env& env, std::function<void(uint16_t vector)> raise)
      : env_(env), raise_(std::move(raise)), timer_(&Raiser::on_time) {
    timer_.self = this;
  }

  // A completion was pushed.
  void note(CompletionQueue& queue) {
    if (!queue.fields().interrupts) return;
    if (queue.news++ == 0) {
      queue.since = env_.now();
      with_news_.push_back(queue);
    }
  }
  void flush();

  void set_coalescing(nvme::InterruptCoalescing coalescing) { coalescing_ = coalescing; }
  void set_vector(nvme::InterruptVector vector);
  nvme::InterruptCoalescing coalescing() const { return coalescing_; }
  // As after power on.
  void reset();
  uint64_t raised() const { return raised_; }

 private:
  struct FlushTimer : task::Timer {
    using Timer::Timer;
    Raiser* self = nullptr;
  };
  static void on_time(task::Timer& timer) { static_cast<FlushTimer&>(timer).self->flush(); }
  // When the queue's news are to be told at the latest.
  Time due(const CompletionQueue& queue) const;

  env::Env& env_;
  std::function<void(uint16_t vector)> raise_;
  FlushTimer timer_;
  nvme::InterruptCoalescing coalescing_;
  std::set<uint16_t> at_once_;
  List<CompletionQueue, CompletionQueue> with_news_;
  uint64_t raised_ = 0;
};

}  // namespace cairn::door::vfio_user
