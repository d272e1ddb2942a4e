// SPDX-License-Identifier: Apache-2.0
// Vring: what a front end has said of one virtqueue, and the queue itself while it runs.
#pragma once

#include <cstdint>
#include <memory>

#include "door/vhost_user/queue.h"
#include "door/vhost_user/ring.h"
#include "door/vhost_user/wire_format.h"

namespace cairn::door::vhost_user {

struct Vring {
  uint16_t size = 0;
  bool has_address = false;
  VringAddress address{};
  RingBase base;
  bool is_enabled = false;
  bool has_kick = false;  // a signal, or the promise that there will be none
  QueueSignals signals;
  std::unique_ptr<Queue> queue;

  bool is_ready() const { return size > 0 && has_address && is_enabled && has_kick; }
};

}  // namespace cairn::door::vhost_user
