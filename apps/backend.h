// SPDX-License-Identifier: Apache-2.0
// Which back end --io means on this machine, and why.
#pragma once

#include <span>
#include <string>

#include "apps/doctor/facts.h"
#include "apps/problem.h"
#include "apps/settings.h"

namespace cairn::apps {

struct UringVerdict {
  bool usable = false;
  std::string found;  // "works", "forbidden by a seccomp filter"
  std::string next;   // what to do about it; empty when usable
};
UringVerdict judge_uring(const doctor::UringFacts& facts);

struct Backend {
  IoChoice io = IoChoice::kEpoll;  // kUring or kEpoll
  std::string why;                 // "io_uring works"
};
// auto takes io_uring where it is usable and epoll elsewhere. A Problem only when uring is demanded
// and is not usable.
Attempt<Backend> choose_backend(IoChoice choice, const doctor::UringFacts& facts);

// A Problem when `cores` has a CPU that this process may not run on.
Attempt<void> check_cores(std::span<const int> cores, const doctor::CpuFacts& facts);

}  // namespace cairn::apps
