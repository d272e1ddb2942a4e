// SPDX-License-Identifier: Apache-2.0
// BlockIo: a store's requests to its drive, each with a deadline, counted.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "drive/drive.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::kv::store {

struct IoStats {
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t flushes = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
};

// Memory is lent until completion. A request larger than the drive's largest is several, one after
// the other. kTimedOut: one of them took longer than `timeout`; else the errors of the drive.
class BlockIo {
 public:
  BlockIo(env::Env& env, drive::Drive& drive, Duration timeout)
      : env_(env),
        drive_(drive),
        block_bytes_(drive.geometry().block_size),
        blocks_max_(drive.geometry().transfer_blocks),
        timeout_(timeout) {}

  uint64_t block_bytes() const { return block_bytes_; }
  task::Task<Result<void>> read(uint64_t block, MutableBytes into);
  task::Task<Result<void>> write(uint64_t block, Bytes from, bool is_durable);
  task::Task<Result<void>> flush();
  const IoStats& stats() const { return stats_; }

 private:
  task::Task<Result<void>> run(drive::Request request, MutableBytes memory);

  env::Env& env_;
  drive::Drive& drive_;
  const uint64_t block_bytes_;
  const uint64_t blocks_max_;  // of one request
  const Duration timeout_;
  IoStats stats_;
};

}  // namespace cairn::kv::store
