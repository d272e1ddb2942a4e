// SPDX-License-Identifier: Apache-2.0
// Recovery: what a store is, from its superblock, its checkpoint and the key log behind that.
//
// The log is good up to the first bucket that is none. Of batches that may have been written before
// the values that they point to were durable, the values are read as well, and the log ends where
// one is missing: nobody was told of that commit. What must have been durable and is not there, is
// damage, and no store is opened on it.
#pragma once

#include "base/error.h"
#include "drive/drive.h"
#include "env/env.h"
#include "kv/store/core.h"
#include "task/task.h"

namespace cairn::kv::store {

// Nothing is written. kNotFound: there is no store on the drive. kUnsupported: one of another
// version. kInvalid: something else is there. kCorrupt: the superblock, the checkpoint or a part of
// the key log that was durable is damaged; what() says which.
task::Task<Result<Recovered>> recover(env::Env& env, drive::Drive& drive, Duration io_timeout);

}  // namespace cairn::kv::store
