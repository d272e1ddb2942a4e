// SPDX-License-Identifier: Apache-2.0
// Between RocksDB and us: its words as our errors, and its log kept silent.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include <memory>

#include "base/error.h"

namespace cairn::bench {

// kIo when it is not ok; RocksDB's own words go to stderr.
Result<void> result_of(const rocksdb::Status& status);

// Takes what RocksDB logs, which would be files among the measured ones.
std::shared_ptr<rocksdb::Logger> silent_log();

// What all benchmarks have: small files so that there are several, nothing compressed, nothing
// said.
rocksdb::Options common_options();

}  // namespace cairn::bench
