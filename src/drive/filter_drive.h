// SPDX-License-Identifier: Apache-2.0
// FilterDrive: services that decide when a request goes on, and change nothing about it.
#pragma once

#include <memory>
#include <utility>

#include "base/error.h"
#include "drive/drive.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::drive {

// Everything passes to the drive below as it is, resize() too. A subclass keeps back what may not
// go yet, in lists by the operation's own hook, and pass()es it when its time comes.
class FilterDrive : public Drive {
 public:
  const Geometry& geometry() const override { return below_->geometry(); }
  Extent extent_at(Lba lba, uint64_t max) const override { return below_->extent_at(lba, max); }
  Incarnation incarnation() const override { return below_->incarnation(); }
  task::Task<Result<void>> resize(uint64_t blocks) override { return below_->resize(blocks); }
  task::Task<void> close() override;

 protected:
  explicit FilterDrive(std::unique_ptr<Drive> below) : below_(std::move(below)) {}
  // To the drive below, now.
  void pass(DriveOp& op) { gate_.spawn(run(op)); }
  // The drive below is done with a request, whatever came of it.
  virtual void passed(const Request&) {}
  // An operation that was kept back leaves its list. Those passed on are ended by their token.
  void cancel(DriveOp& op) override;
  // One that was kept back is gone.
  virtual void left() {}

 private:
  task::Task<void> run(DriveOp& op);

  std::unique_ptr<Drive> below_;
  task::Gate gate_;
};

}  // namespace cairn::drive
