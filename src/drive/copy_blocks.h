// SPDX-License-Identifier: Apache-2.0
// Copies from drive to drive: holes of the source, and blocks of zeroes, become holes of the
// target, so that a copy takes the space that its source does. Used by whatever brings a leg up to
// date, moves chunks or copies a range.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/error.h"
#include "drive/drive.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::drive {

// How many blocks from `lba` on, up to `max`, are holes together; 0: the first is none, or it is
// not known. It may ask a file system, and looks at 1 GiB at most: call it again for more.
uint64_t holes_at(const Drive& drive, uint64_t lba, uint64_t max);

// Blocks of a copy that are alike.
struct CopyRun {
  uint64_t first = 0;  // counted from the start of the copy
  uint64_t count = 0;
  bool is_zero = false;
};
// The run that begins at block `first` of `data`, which lies at `lba` of a drive that gives space
// back in units of so many blocks: a unit, or the part of it that `data` has, is zeroes or not.
struct CopyShape {
  uint64_t lba = 0;
  uint64_t unit = 1;
  uint32_t block_size = 0;
};
CopyRun copy_run_at(const CopyShape& shape, Bytes data, uint64_t first);

// Carries out `request`, which is a write of `data`: units of zeroes are zeroed by request and give
// their space back. Errors of the drive; then any of the blocks may have changed.
task::Task<Result<void>> write_copy(Drive& to, Request request, MutableBytes data,
                                    task::CancelToken token = {});
// The blocks of `request` become zeroes and give their space back; a drive that cannot do that gets
// them written.
task::Task<Result<void>> write_holes(env::Env& env, Drive& to, Request request,
                                     task::CancelToken token = {});

}  // namespace cairn::drive
