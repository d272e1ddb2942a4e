// SPDX-License-Identifier: Apache-2.0
// LayoutDrive: blocks that lie on other drives, each on one of them: slice, stripe, channels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "drive/join.h"
#include "drive/losses.h"
#include "drive/ranges.h"
#include "service/common/service_drive.h"

namespace cairn::drive {

// A subclass says where each block lies. Parts run side by side. A flush goes to all legs. A
// compare-and-write of several parts is alone with its blocks: nothing else of this drive changes
// them meanwhile, so a mismatch in any part writes nothing. A write that fails in one part may have
// changed blocks of the others.
class LayoutDrive : public ServiceDrive {
 public:
  Extent extent_at(Lba lba, uint64_t max) const final;

 protected:
  struct LegPosition {
    size_t leg = 0;
    uint64_t block = 0;  // of that leg
    uint64_t run = 0;    // blocks from here on that follow each other on that leg
  };
  using Memory = std::span<const MutableBytes>;
  explicit LayoutDrive(std::vector<std::unique_ptr<Drive>> below)
      : ServiceDrive(std::move(below)) {}

  // What the legs have in common: the smallest transfer, the largest unit of discards, whether any
  // has a volatile cache. Writes are atomic in a unit that divides those of all legs and `seams`,
  // of which each block is a multiple where one leg ends and another begins. `blocks` is left 0.
  Geometry common_geometry(uint64_t seams) const;

  virtual LegPosition locate(uint64_t block) const = 0;
  // The request as one of this kind, with `memory` as its data, wherever its blocks lie: here a
  // request for each run, so many of them at a time.
  virtual task::Task<Result<void>> spread(DriveOp& op, Request::Kind kind, Memory memory);

 private:
  task::Task<Result<void>> run(DriveOp& op) final;
  task::Task<Result<void>> flush_all(DriveOp& op);
  task::Task<Result<void>> compare_and_write(DriveOp& op);
  // The run that begins at block `done` of the request.
  task::Task<void> run_one(DriveOp& op, Request::Kind kind, Memory memory, uint64_t done,
                           Join& join);
  task::Task<void> flush_leg(DriveOp& op, size_t leg, Join& join);

  Losses losses_;  // of legs
  Ranges ranges_;  // who changes which blocks here
};

// Where a range of blocks lies in at most one range of each leg, which gets one request for it.
class LegsDrive : public LayoutDrive {
 protected:
  struct Range {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  using LayoutDrive::LayoutDrive;

  // The blocks of that leg that hold these.
  virtual Range leg_range(size_t leg, Range blocks) const = 0;

 private:
  task::Task<Result<void>> spread(DriveOp& op, Request::Kind kind, Memory memory) final;
  task::Task<void> run_part(DriveOp& op, Request::Kind kind, Memory memory, size_t leg, Join& join);
};

// Legs that can serve one drive: kInvalid unless all have the same block size.
Result<void> check_same_blocks(const std::vector<std::unique_ptr<Drive>>& legs);

}  // namespace cairn::drive
