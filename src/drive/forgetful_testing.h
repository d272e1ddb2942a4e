// SPDX-License-Identifier: Apache-2.0
// ForgetfulDrive: a drive that says it lost what was not flushed, when its test wants it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "drive/filter_drive.h"

namespace cairn::drive {

class ForgetfulDrive final : public FilterDrive {
 public:
  explicit ForgetfulDrive(std::unique_ptr<Drive> below) : FilterDrive(std::move(below)) {}

  // On its core.
  void lose() { ++losses_; }
  Incarnation incarnation() const override {
    Incarnation now = FilterDrive::incarnation();
    now.opening += 2 * losses_;
    return now;
  }

 private:
  void start(DriveOp& op) override { pass(op); }

  uint64_t losses_ = 0;
};

}  // namespace cairn::drive
