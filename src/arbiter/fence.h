// SPDX-License-Identifier: Apache-2.0
// Fence: keeps a host from drives, for good, before what it had goes to somebody else.
//
// A lease that has ended is not enough: a host that stood still may have commands on their way. At
// boxes the command is Reservation Acquire with Preempt and Abort, which takes the host's
// registration away; a namespace is then reserved for registrants only.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "task/cancel.h"
#include "task/task.h"
#include "volume/types.h"

namespace cairn::arbiter {

class Fence {
 public:
  virtual ~Fence() = default;
  // Those of the drives to which the host may still write, for they did not answer in time. Nothing
  // that it has sent or will send changes any of the others, unless it opens them anew: whoever
  // does that asks an arbiter whether it still may, before it writes. Of a host that is fenced
  // already nothing is done.
  virtual task::Task<std::vector<volume::MegaVolId>> fence(std::string host,
                                                           std::vector<volume::MegaVolInfo> drives,
                                                           task::CancelToken token = {}) = 0;
  // The same of all hosts but these, at one drive.
  virtual task::Task<Result<void>> keep_only(std::vector<std::string> hosts, std::string uri,
                                             task::CancelToken token = {}) = 0;
  // The drive leaves the pool: nobody is kept from it any more on the pool's behalf.
  virtual task::Task<Result<void>> release(std::string uri, task::CancelToken token = {}) = 0;
};

// For pools whose drives nobody but this process reaches: with it all its hosts end.
class NoFence final : public Fence {
 public:
  task::Task<std::vector<volume::MegaVolId>> fence(std::string, std::vector<volume::MegaVolInfo>,
                                                   task::CancelToken) override {
    co_return std::vector<volume::MegaVolId>();
  }
  task::Task<Result<void>> keep_only(std::vector<std::string>, std::string,
                                     task::CancelToken) override {
    co_return Result<void>();
  }
  task::Task<Result<void>> release(std::string, task::CancelToken) override {
    co_return Result<void>();
  }
};

}  // namespace cairn::arbiter
