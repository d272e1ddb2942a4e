// SPDX-License-Identifier: Apache-2.0
// Which back end --io means on this machine, and why.
#pragma once

#include <span>
#include <string>

#include "base/problem.h"
#include "config/settings.h"
#include "world/machine/facts.h"

namespace cairn::machine {

struct UringVerdict {
  bool usable = false;
  std::string found;  // "works", "forbidden by a seccomp filter"
  std::string next;   // what to do about it; empty when usable
};
UringVerdict judge_uring(const UringFacts& facts);

struct Backend {
  config::IoChoice io = config::IoChoice::kEpoll;  // kUring or kEpoll
  std::string why;                                 // "io_uring works"
};
// auto takes io_uring where it is usable and epoll elsewhere. A Problem only when uring is demanded
// and is not usable.
Attempt<Backend> choose_backend(config::IoChoice choice, const UringFacts& facts);

// A Problem when `cores` has a CPU that this process may not run on.
Attempt<void> check_cores(std::span<const int> cores, const CpuFacts& facts);

}  // namespace cairn::machine
