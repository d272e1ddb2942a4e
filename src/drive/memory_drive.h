// SPDX-License-Identifier: Apache-2.0
// A drive in memory: as fast as a copy, gone with the process.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "drive/block_latches.h"
#include "drive/drive.h"
#include "drive/shared_ranges.h"
#include "env/env.h"
#include "task/gate.h"

namespace cairn::drive {

// The medium: shared by the drives that several cores open on it, and outlives them. It grows by
// regions and never moves one, so that other cores may copy while it grows.
class MemoryMedium {
 public:
  // kInvalid: the size is no multiple of the block size; kLimit: no such memory.
  static Result<std::unique_ptr<MemoryMedium>> make(
      env::Env& env, uint64_t size, uint32_t block_size,
      env::MemoryPages pages = env::MemoryPages::kLarge);
  uint64_t size() const { return size_; }
  uint32_t block_size() const { return block_size_; }
  SharedRanges& ranges() { return ranges_; }
  // Drawn when it was made: no other memory has it.
  const Incarnation& incarnation() const { return incarnation_; }
  // What keeps each block whole while several cores copy it. Null: there is one core.
  BlockLatches* latches() { return latches_.get(); }
  const std::vector<std::unique_ptr<env::Memory>>& regions() const { return regions_; }

  // Blocks beyond the old end read as zeroes. The first core to ask does it, while no other asks;
  // for those that ask afterwards for the same size there is nothing to do. kLimit.
  Result<void> resize(uint64_t size);

 private:
  MemoryMedium(env::Env& env, uint32_t block_size, env::MemoryPages pages)
      : env_(env),
        block_size_(block_size),
        pages_(pages),
        ranges_(env.core_count()),
        incarnation_(draw_incarnation(env)),
        latches_(env.core_count() > 1 ? std::make_unique<BlockLatches>() : nullptr) {}
  static Incarnation draw_incarnation(env::Env& env) {
    Incarnation drawn{.medium = env.rng().next() | 1, .opening = env.rng().next() | 1};
    drawn.local_opening = drawn.opening;
    return drawn;
  }
  uint64_t capacity() const;
  void discard(uint64_t begin, uint64_t end);

  env::Env& env_;
  std::vector<std::unique_ptr<env::Memory>> regions_;  // together at least size_
  uint64_t size_ = 0;
  uint32_t block_size_;
  env::MemoryPages pages_;
  SharedRanges ranges_;
  const Incarnation incarnation_;
  std::unique_ptr<BlockLatches> latches_;
};

// Completes every request at once, unless a compare-and-write has its blocks to itself. There is no
// crash it could survive, so nothing is volatile.
class MemoryDrive final : public Drive {
 public:
  MemoryDrive(env::Env& env, MemoryMedium& medium);
  const Geometry& geometry() const override { return geometry_; }
  Incarnation incarnation() const override { return medium_.incarnation(); }
  task::Task<Result<void>> resize(uint64_t blocks) override;
  task::Task<void> close() override { return gate_.close(); }

 private:
  void start(DriveOp& op) override;
  void cancel(DriveOp& op) override;
  bool run_now(const Request& request, std::span<const MutableBytes> data,
               Result<void>& done) override;
  Bytes lend_now(Lba lba, uint64_t blocks) const override;
  Result<void> run(const Request& request, std::span<const MutableBytes> data,
                   std::span<const MutableBytes> second);
  Result<void> run(const DriveOp& op) { return run(op.request, op.data(), op.second()); }
  task::Task<void> run_alone(DriveOp& op);
  task::Task<void> run_in_turn(DriveOp& op);
  Result<void> compare(uint64_t offset, std::span<const MutableBytes> with) const;
  // What is stored at `offset`, up to the end of its region.
  MutableBytes at(uint64_t offset) const;
  // Calls visit(stored, piece) for parts of the same size until all pieces are through. Where
  // several cores have the medium, each block is held so meanwhile.
  template <class F>
  void visit(uint64_t offset, std::span<const MutableBytes> pieces, BlockLatches::Mode mode,
             F&& visit) const;
  template <class F>
  void visit_latched(uint64_t offset, std::span<const MutableBytes> pieces, BlockLatches::Mode mode,
                     F&& visit) const;
  void clear(uint64_t offset, uint64_t length);
  void clear_latched(uint64_t offset, uint64_t length);

  env::Env& env_;
  MemoryMedium& medium_;
  BlockLatches* const latches_;        // null: this is the only core
  Ranges& ranges_;                     // of this core
  std::vector<env::Memory*> regions_;  // as this core knows them
  Geometry geometry_;
  task::Gate gate_;
};

}  // namespace cairn::drive
