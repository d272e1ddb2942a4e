// SPDX-License-Identifier: Apache-2.0
// TrialDrive: a drive as if it were written to. What is written stays in memory and is forgotten,
// so that a service can be opened on it to see what would come of that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "drive/drive.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::drive {

// The drive below outlives it, stays open, and is not changed by others meanwhile. kNoSpace when
// more than kTrialBytesMax were written.
inline constexpr uint64_t kTrialBytesMax = 16_MiB;

class TrialDrive final : public Drive {
 public:
  explicit TrialDrive(Drive& below) : below_(below) {}
  const Geometry& geometry() const override { return below_.geometry(); }
  Incarnation incarnation() const override { return below_.incarnation(); }
  const Drive& below() const { return below_; }
  Extent extent_at(Lba lba, uint64_t max) const override {
    return written_.empty() ? below_.extent_at(lba, max) : Drive::extent_at(lba, max);
  }
  task::Task<void> close() override { return gate_.close(); }

 private:
  void start(DriveOp& op) override { gate_.spawn(serve(op)); }
  void cancel(DriveOp&) override {}
  task::Task<void> serve(DriveOp& op);
  task::Task<Result<void>> run(DriveOp& op);
  task::Task<Result<void>> read(const DriveOp& op, std::vector<std::byte>& into);
  Result<void> write(const Request& request, Bytes from);
  Result<void> clear(const Request& request);

  Drive& below_;
  std::map<uint64_t, std::vector<std::byte>> written_;  // by block; empty: zeroes
  task::Gate gate_;
};

}  // namespace cairn::drive
