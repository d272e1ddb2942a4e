// SPDX-License-Identifier: Apache-2.0
// Requests whose memory somebody else can change while they run (Request::unstable_memory).
//
// Whoever looks at it once, or leaves that to the drive below, need not care. Whoever looks twice
// (sends it to two drives, sums what it has written), or keeps what it read into it, runs the
// request once more, on a copy that is its own. Memory that is stable costs one look at a flag.
#pragma once

#include "base/error.h"
#include "drive/drive.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::drive {

// Whether such a request has memory that somebody else can change.
inline bool has_unstable_memory(const Request& request) {
  using Kind = Request::Kind;
  return request.unstable_memory && request.kind != Kind::kFlush &&
         request.kind != Kind::kDiscard && request.kind != Kind::kWriteZeroes;
}

// Runs the request of `op` on `drive` (most often the one that was asked) with a copy of its
// memory; what a read brings is there when it succeeds, and never before. The caller completes
// `op`. kLimit: there is no memory for the copy.
task::Task<Result<void>> run_on_copy(env::Env& env, Drive& drive, const DriveOp& op);

}  // namespace cairn::drive
