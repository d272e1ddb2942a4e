// SPDX-License-Identifier: Apache-2.0
// What is different about one of a host's I/O queues.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/units.h"
#include "fabric/wire/doorbell.h"

namespace cairn::fabric {

// Where it says nothing, the queue is as the host's others.
struct LaneOptions {
  std::optional<DoorbellOptions::Mode> batching;
  std::optional<uint16_t> caravan;
  std::optional<uint32_t> caravan_bytes;
  std::optional<Duration> doorbell;
  // It is kept for requests that somebody waits for (drive::Request::is_urgent), which use it first
  // and do not queue behind others; these never use it. When all lanes are, they carry everything.
  bool urgent = false;

  bool operator==(const LaneOptions&) const = default;

  DoorbellOptions over(const DoorbellOptions& usual) const {
    return {.mode = batching.value_or(usual.mode),
            .count = caravan.value_or(usual.count),
            .bytes = caravan_bytes.value_or(usual.bytes),
            .delay = doorbell.value_or(usual.delay)};
  }
};

// By queue id, from 1.
using LaneOptionsMap = std::map<uint16_t, LaneOptions>;

}  // namespace cairn::fabric
