// SPDX-License-Identifier: Apache-2.0
// Files and block devices as disks: opening, sizing and the calls that have no asynchronous form.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "env/disk.h"
#include "world/posix/fd.h"

namespace cairn::posix {

struct DiskFile {
  Fd fd;
  uint64_t size = 0;
  uint32_t block_size = 512;
  bool is_device = false;
  bool read_only = false;
  uint64_t medium_id = 0;  // as env::DiskIdentity has it
};

// Opens as DiskOptions say; errors as Env::open_disk. Holds an exclusive lock (shared when read
// only) until closed, so that one file is never served twice.
Result<DiskFile> open_disk_file(const env::DiskOptions& options);

// kDenied: a change of a file that was opened to be read.
Result<void> check_access(const DiskFile& file, const env::DiskOp::Request& request);

// Blocking forms of one request, complete or error; for helper threads.
Result<void> run_blocking(const DiskFile& file, const env::DiskOp& op);

// The fallocate mode of a discard or write-zeroes request.
int fallocate_mode(env::DiskOp::Kind kind);

// As Disk::next_data(); a file system that knows no holes has data everywhere.
env::Disk::Extent next_data(const DiskFile& file, uint64_t offset);

// Zeroes a range by writing, where the file system cannot do it by command.
Result<void> zero_by_writing(const DiskFile& file, uint64_t offset, uint64_t length);

}  // namespace cairn::posix
