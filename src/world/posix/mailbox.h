// SPDX-License-Identifier: Apache-2.0
// Mailbox: how other threads hand messages to a core. The only atomics outside this folder's world.
#pragma once

#include <atomic>

#include "env/env.h"

namespace cairn::posix {

// Any thread puts, the owner takes everything at once. Messages from one thread keep their order.
// The sleep protocol saves a system call per message: the owner says it will sleep, looks once
// more, then blocks on its event descriptor; only a put that finds it asleep writes to that.
class Mailbox {
 public:
  // True: the owner sleeps and must be woken.
  [[nodiscard]] bool put(env::Message& message) {
    env::Message* head = head_.load(std::memory_order_relaxed);
    do {
      message.next = head;
    } while (!head_.compare_exchange_weak(head, &message));
    return wake_needed();
  }
  // True: the owner sleeps and must be woken; at most one caller is told so.
  [[nodiscard]] bool wake_needed() { return asleep_.load() && asleep_.exchange(false); }

  // The owner has something to take.
  bool has_mail() const { return head_.load(std::memory_order_relaxed) != nullptr; }
  // All messages, oldest first, linked by `next`; null when there are none.
  env::Message* take_all() {
    if (head_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    env::Message* newest = head_.exchange(nullptr, std::memory_order_acquire);
    env::Message* oldest = nullptr;
    while (newest != nullptr) {
      env::Message* next = newest->next;
      newest->next = oldest;
      oldest = newest;
      newest = next;
    }
    return oldest;
  }

  // Before blocking. False: something arrived meanwhile; do not sleep.
  [[nodiscard]] bool fall_asleep() {
    asleep_.store(true);
    if (head_.load() == nullptr) return true;
    asleep_.store(false);
    return false;
  }
  void awake() { asleep_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<env::Message*> head_ = nullptr;
  std::atomic<bool> asleep_ = false;
};

}  // namespace cairn::posix
