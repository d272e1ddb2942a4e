// SPDX-License-Identifier: Apache-2.0
// Whether a Drive gives back what was written to it: stamped blocks, random requests, an oracle of
// what each block may hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "drive/drive.h"
#include "env/env.h"
#include "loadgen/block_oracle.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::loadgen {

struct DriveVerify {
  double write_share = 0.5;
  uint32_t depth = 32;               // requests outstanding, 1 to kLoadDepthMax
  uint32_t request_blocks_max = 16;  // of one request, drawn from 1 up to this
  bool durable = false;              // writes survive a crash when they complete
  Duration flush_every = 100_ms;     // else a flush makes them durable
  Duration duration = 10_s;
  uint64_t requests_max = 0;  // ends it earlier; 0: no such end
};

// A block that holds what it must not.
struct BlockMismatch {
  Lba lba;
  Allowed allowed;
  std::string found;  // see describe_block
};

struct VerifyResult {
  uint64_t writes = 0;
  uint64_t reads = 0;
  uint64_t flushes = 0;
  uint64_t blocks_written = 0;
  uint64_t blocks_checked = 0;  // reads of blocks whose contents were known
  // Then it ended early; the blocks a failed write was for are open from then on.
  std::optional<BlockMismatch> mismatch;
  std::optional<Error> error;
  std::string failed;  // "writing block 12"

  bool ok() const { return !mismatch && !error; }
};

// Writes and reads blocks of the oracle's range at random until the time is over or something is
// wrong, and then reads all that was written once more, in random order. `token` ends both; that is
// no error. kInvalid: the range is not within the drive, or depth or share; kLimit: no memory.
task::Task<Result<VerifyResult>> verify_drive(env::Env& env, drive::Drive& drive,
                                              DriveVerify options, BlockOracle& oracle,
                                              task::CancelToken token);

// Reads every block of the range once, in random order. What the oracle knows must be there as
// after a crash of the target.
task::Task<Result<VerifyResult>> check_drive(env::Env& env, drive::Drive& drive,
                                             DriveVerify options, const BlockOracle& oracle,
                                             task::CancelToken token);

// The same without an oracle: a block that bears a stamp of `seed` must be whole and in its place,
// and what bears none is not looked at. blocks_checked says how many did.
struct StampRange {
  uint64_t seed = 0;
  Lba first;
  uint64_t blocks = 0;
};
task::Task<Result<VerifyResult>> check_stamps(env::Env& env, drive::Drive& drive,
                                              DriveVerify options, StampRange range,
                                              task::CancelToken token);

}  // namespace cairn::loadgen
