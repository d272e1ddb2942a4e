// SPDX-License-Identifier: Apache-2.0
// What a vhost-user server can be told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/units.h"
#include "door/common/waiting.h"

namespace cairn::door::vhost_user {

using door::Waiting;

struct VhostOptions {
  // How long an adaptive queue looks for more after it found something, at most: one whose guest
  // takes longer looks for less, down to nothing.
  Duration adaptive_window = 50_us;
  // How long a front end may take to send the rest of a message, or to take an answer.
  Duration stall_timeout = 30_s;
  // Told of front ends that were left, and why, once a second at most for each reason; null: nobody
  // is. The text is borrowed.
  std::function<void(std::string_view)> log;
};

// For one device: what its door was told, and what is its own.
struct DeviceOptions {
  const VhostOptions& door;  // outlives the device
  Waiting waiting = Waiting::kAdaptive;
};

// Of one device. Guests use as many as they have processors.
inline constexpr size_t kQueuesMax = 64;
// Requests of one queue that are served at once; further ones wait in it.
inline constexpr size_t kRequestsMax = 256;

}  // namespace cairn::door::vhost_user
