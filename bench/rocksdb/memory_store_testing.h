// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "bench/rocksdb/block_store.h"

namespace cairn::bench {

// A drive in memory that can be told to fail.
class MemoryStore final : public BlockStore {
 public:
  explicit MemoryStore(uint64_t size) : bytes_(size) {}
  uint32_t block_size() const override { return 4096; }
  uint64_t blocks() const override { return bytes_.size() / 4096; }
  uint32_t transfer_max() const override { return 64 * 1024; }
  Result<void> transfer(std::span<const Transfer> transfers) override {
    const std::scoped_lock lock(mutex_);
    for (const Transfer& each : transfers) {
      CHECK(!each.bytes.empty() && each.bytes.size() % 4096 == 0);
      CHECK(each.bytes.size() <= transfer_max());
      CHECK(each.block + each.bytes.size() / 4096 <= blocks());
      if (fails) return fail(Errc::kIo, "told to fail");
      std::byte* place = bytes_.data() + each.block * 4096;
      if (each.writes) {
        std::memcpy(place, each.bytes.data(), each.bytes.size());
      } else {
        std::memcpy(each.bytes.data(), place, each.bytes.size());
      }
    }
    return {};
  }
  Result<void> flush() override {
    const std::scoped_lock lock(mutex_);
    ++flushes;
    return {};
  }
  bool fails = false;
  int flushes = 0;

 private:
  std::mutex mutex_;
  std::vector<std::byte> bytes_;
};

}  // namespace cairn::bench
