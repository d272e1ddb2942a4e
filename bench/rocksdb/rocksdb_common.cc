// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/rocksdb_common.h"

#include <fmt/format.h>

#include <cstdio>

namespace cairn::bench {

namespace {

class Silence final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

}  // namespace

Result<void> result_of(const rocksdb::Status& status) {
  if (status.ok()) return {};
  fmt::print(stderr, "cairn: RocksDB: {}\n", status.ToString());
  return fail(Errc::kIo, "RocksDB failed");
}

std::shared_ptr<rocksdb::Logger> silent_log() { return std::make_shared<Silence>(); }

rocksdb::Options common_options() {
  rocksdb::Options options;
  options.info_log = silent_log();
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = 16 << 20;
  options.target_file_size_base = 16 << 20;
  options.max_background_jobs = 2;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

}  // namespace cairn::bench
