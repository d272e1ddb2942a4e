// SPDX-License-Identifier: Apache-2.0
// Route: a drive of the pool as one volume uses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "share/slices.h"
#include "share/trade_messages.h"
#include "share/types.h"
#include "view/types.h"

namespace cairn::volume {

struct Route {
  Route(std::string its_uri, uint32_t its_number) : uri(std::move(its_uri)), number(its_number) {}

  uint64_t cost(view::IoType type, uint64_t bytes) const {
    return share::weighted(type, bytes, write_cost_x10);
  }

  const std::string uri;
  const uint32_t number;  // among the volume's, for the scheduler
  // As the market that was joined has it; none: it does not know the drive.
  std::optional<share::DrivePlace> place;
  std::optional<view::SessionId> session;  // none: nobody is told of its requests
  share::Slices slices{share::DriveId(0)};
  bool is_held = false;  // to its slices: there were some
  bool is_used = false;  // since the market was last asked
  uint32_t write_cost_x10 = 10;
  bool is_congested = false;

  uint64_t in_flight = 0;  // bytes that were sent
  // What waits: requests, and what they cost when they came; of that, to be written and read.
  uint64_t waiting = 0;
  uint64_t waiting_cost = 0;
  uint64_t waiting_in = 0;
  uint64_t waiting_out = 0;
};

}  // namespace cairn::volume
