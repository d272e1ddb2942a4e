// SPDX-License-Identifier: Apache-2.0
// A drive in memory: as fast as a copy, gone with the process.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "drive/drive.h"
#include "env/env.h"

namespace cairn::drive {

// The medium: shared by the drives that several cores open on it, and outlives them.
class MemoryMedium {
 public:
  // kInvalid: the size is no multiple of the block size; kLimit: no such memory.
  static Result<std::unique_ptr<MemoryMedium>> make(env::Env& env, uint64_t size,
                                                    uint32_t block_size);
  uint64_t size() const { return memory_->bytes().size(); }
  uint32_t block_size() const { return block_size_; }
  env::Memory& memory() { return *memory_; }

 private:
  MemoryMedium(std::unique_ptr<env::Memory> memory, uint32_t block_size)
      : memory_(std::move(memory)), block_size_(block_size) {}
  std::unique_ptr<env::Memory> memory_;
  uint32_t block_size_;
};

// Completes every request at once. There is no crash it could survive, so nothing is volatile.
class MemoryDrive final : public Drive {
 public:
  explicit MemoryDrive(MemoryMedium& medium);
  const Geometry& geometry() const override { return geometry_; }

 private:
  void start(DriveOp& op) override;
  void cancel(DriveOp& op) override;
  Result<void> compare(uint64_t offset, std::span<const MutableBytes> with) const;

  MemoryMedium& medium_;
  Geometry geometry_;
};

}  // namespace cairn::drive
