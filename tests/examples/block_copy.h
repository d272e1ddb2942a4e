// SPDX-License-Identifier: Apache-2.0
// Block copy: one disk onto another, many pieces at once, written only against env/ as an example.
//
// What to copy: a fixed number of workers instead of a queue that grows, one buffer each from the
// core's pool, the first error stops the others and is what the caller gets, retries with a named
// maximum, and success said only after a flush.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/units.h"
#include "env/disk.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::examples {

struct BlockCopyOptions {
  uint32_t piece_size = 64_KiB;  // a multiple of both block sizes, a buffer of the pool at most
  uint32_t in_flight_max = 16;   // pieces at once; so many buffers are needed
  uint32_t attempts_max = 3;     // of each read and write that fails with kIo
  Duration retry_delay = 5_ms;
};

// Copies all of `from` to the start of `to` and returns how many bytes that were; then they are
// durable there. Both disks belong to this core and outlive the task.
//
// kInvalid: `to` is smaller, or piece_size does not fit; kLimit: no buffers. Otherwise the first
// error of a disk, or of `stop`; then nothing is in flight any more, and `to` holds any mixture of
// old and new blocks. Copying again makes it whole.
task::Task<Result<uint64_t>> copy_blocks(env::Env& env, env::Disk& from, env::Disk& to,
                                         BlockCopyOptions options, task::CancelToken stop);

// Whether `to` begins with the contents of `from`. Errors as above.
task::Task<Result<bool>> same_blocks(env::Env& env, env::Disk& from, env::Disk& to,
                                     BlockCopyOptions options, task::CancelToken stop);

}  // namespace cairn::examples
