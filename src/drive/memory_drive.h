// SPDX-License-Identifier: Apache-2.0
// A drive in memory: as fast as a copy, gone with the process.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "drive/drive.h"
#include "drive/shared_ranges.h"
#include "env/env.h"
#include "task/gate.h"

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
  SharedRanges& ranges() { return ranges_; }

 private:
  MemoryMedium(std::unique_ptr<env::Memory> memory, uint32_t block_size, uint32_t cores)
      : memory_(std::move(memory)), block_size_(block_size), ranges_(cores) {}
  std::unique_ptr<env::Memory> memory_;
  uint32_t block_size_;
  SharedRanges ranges_;
};

// Completes every request at once, unless a compare-and-write has its blocks to itself. There is no
// crash it could survive, so nothing is volatile.
class MemoryDrive final : public Drive {
 public:
  MemoryDrive(env::Env& env, MemoryMedium& medium);
  const Geometry& geometry() const override { return geometry_; }
  task::Task<void> close() override { return gate_.close(); }

 private:
  void start(DriveOp& op) override;
  void cancel(DriveOp& op) override;
  Result<void> run(const DriveOp& op);
  task::Task<void> run_alone(DriveOp& op);
  task::Task<void> run_in_turn(DriveOp& op);
  Result<void> compare(uint64_t offset, std::span<const MutableBytes> with) const;

  env::Env& env_;
  MemoryMedium& medium_;
  Ranges& ranges_;  // of this core
  Geometry geometry_;
  task::Gate gate_;
};

}  // namespace cairn::drive
