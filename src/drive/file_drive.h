// SPDX-License-Identifier: Apache-2.0
// A drive on a file or block device: what env::Disk offers, shaped as a Drive.
#pragma once

#include <cstdint>
#include <memory>

#include "base/buffer.h"
#include "drive/drive.h"
#include "drive/losses.h"
#include "drive/shared_ranges.h"
#include "env/env.h"
#include "task/gate.h"
#include "task/sync.h"

namespace cairn::drive {

// Memory that is not aligned for direct access is copied through a Scratch (scratch.h): such a
// request fails with kLimit only when the machine has no memory. A write is atomic for one block.
class FileDrive final : public Drive {
 public:
  // `block_size` at least the disk's own; `ranges` and `incarnation` are those of all drives on
  // this medium.
  FileDrive(env::Env& env, std::unique_ptr<env::Disk> disk, uint32_t block_size,
            SharedRanges& ranges, const Incarnation& incarnation);

  const Geometry& geometry() const override { return geometry_; }
  Incarnation incarnation() const override { return incarnation_; }
  // As the file system says; it may wait for that.
  Extent extent_at(Lba lba, uint64_t max) const override;
  // Waits for what is in flight here; what comes meanwhile waits for it.
  task::Task<Result<void>> resize(uint64_t blocks) override;
  task::Task<void> close() override;

 private:
  void start(DriveOp& op) override;
  // Its operations on the disk take the token themselves.
  void cancel(DriveOp&) override {}
  task::Task<void> serve(DriveOp& op);
  task::Task<Result<void>> run(DriveOp& op);
  task::Task<Result<void>> transfer(DriveOp& op, std::span<const MutableBytes> pieces);
  task::Task<Result<void>> compare(DriveOp& op);
  task::Task<Result<void>> compare_and_write(DriveOp& op);
  task::Task<Result<void>> zero(DriveOp& op);
  task::Task<Result<void>> flush(DriveOp& op);
  uint64_t offset(const DriveOp& op) const { return op.request.lba.value() * geometry_.block_size; }
  uint64_t length(const DriveOp& op) const { return op.request.blocks * geometry_.block_size; }
  bool is_aligned_for_disk(std::span<const MutableBytes> pieces) const;

  env::Env& env_;
  std::unique_ptr<env::Disk> disk_;
  Geometry geometry_;
  const Incarnation incarnation_;
  SharedRanges& ranges_;
  Losses losses_;
  task::Gate gate_;
  size_t running_ = 0;
  bool resizing_ = false;
  task::Event idle_;     // nothing runs; only resize() waits for it
  task::Event resized_;  // the resize is over
};

}  // namespace cairn::drive
