// SPDX-License-Identifier: Apache-2.0
// An allocation that waits for a commit, which takes along whoever waits by then. Internal.
#pragma once

#include <utility>
#include <vector>

#include "arbiter/arbiter.h"

namespace cairn::arbiter {

struct Arbiter::Waiting {
  Waiting(volume::Session its_session, std::vector<uint32_t> its_extents)
      : session(its_session), extents(std::move(its_extents)) {}
  volume::Session session;
  std::vector<uint32_t> extents;
  bool is_done = false;
  Result<void> result;
};

}  // namespace cairn::arbiter
