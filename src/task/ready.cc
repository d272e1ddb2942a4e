// SPDX-License-Identifier: Apache-2.0
#include "task/ready.h"

namespace cairn::task {

constinit thread_local ReadyQueue* ReadyQueue::current_ = nullptr;

size_t ReadyQueue::run(size_t max) {
  const Scope scope(*this);
  size_t ran = 0;
  while (ran < max && head_ != nullptr) {
    Runnable* entry = head_;
    head_ = entry->next;
    if (head_ == nullptr) tail_ = &head_;
    inline_turns_ = kInlineTurns;
    entry->run(*entry);
    ++ran;
  }
  return ran;
}

}  // namespace cairn::task
