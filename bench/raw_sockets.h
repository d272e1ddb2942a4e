// SPDX-License-Identifier: Apache-2.0
// The baselines: what a good engineer gets from the kernel without Cairn, on loopback TCP with one
// pinned thread each side.
#pragma once

#include "base/error.h"
#include "bench/workload.h"

namespace cairn::bench {

// Blocking sockets: one send or recv at a time, the thread sleeps in it.
Result<Sample> raw_blocking_stream(const Load& load);
Result<Sample> raw_blocking_pingpong(const Load& load);

// Non-blocking sockets and an epoll loop: try first, wait for readiness only when there is none.
Result<Sample> raw_epoll_stream(const Load& load);
Result<Sample> raw_epoll_pingpong(const Load& load);

}  // namespace cairn::bench
