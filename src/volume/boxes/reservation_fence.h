// SPDX-License-Identifier: Apache-2.0
// ReservationFence: fences hosts at boxes by taking their registrations away.
#pragma once

#include <string>
#include <vector>

#include "arbiter/fence.h"
#include "env/env.h"
#include "volume/boxes/nvme_source.h"

namespace cairn::volume {

// All arbiters do it by one identity, which stays registered at every drive where it came once: so
// the reservation there never ends with a host that leaves, and one that was fenced stays out.
class ReservationFence final : public arbiter::Fence {
 public:
  // Both outlive it.
  ReservationFence(env::Env& env, NvmeSource& source) : env_(env), source_(source) {}

  // All are asked side by side, and each has five seconds.
  task::Task<std::vector<MegaVolId>> fence(std::string host, std::vector<MegaVolInfo> drives,
                                           task::CancelToken token = {}) override;
  // kUnreachable, kTimedOut: the box does not answer.
  task::Task<Result<void>> keep_only(std::vector<std::string> hosts, std::string uri,
                                     task::CancelToken token = {}) override;
  // The reservation ends.
  task::Task<Result<void>> release(std::string uri, task::CancelToken token = {}) override;

 private:
  task::Task<Result<void>> expel(std::string uri, Registration::Expelled who, bool stays,
                                 task::CancelToken token);

  env::Env& env_;
  NvmeSource& source_;
};

}  // namespace cairn::volume
