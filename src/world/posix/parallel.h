// SPDX-License-Identifier: Apache-2.0
// Work of a program that is no service: jobs that share nothing, on threads of their own.
#pragma once

#include <cstddef>
#include <functional>

namespace cairn::posix {

// Calls job(0) to job(count - 1), each once, on at most `threads` threads (the caller's is one of
// them), and returns when all have returned. Jobs must not write what another reads.
void run_parallel(size_t threads, size_t count, const std::function<void(size_t)>& job);

// How many threads this process may run at once.
size_t threads_here();

}  // namespace cairn::posix
