// SPDX-License-Identifier: Apache-2.0
// RocksDB's files as FlatFiles.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

#include "bench/rocksdb/flat_files.h"

namespace cairn::bench {

// `files` outlives it. Locks are granted without asking: one process has the drive.
std::shared_ptr<rocksdb::FileSystem> make_file_system(FlatFiles& files);

}  // namespace cairn::bench
