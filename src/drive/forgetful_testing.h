// SPDX-License-Identifier: Apache-2.0
// ForgetfulDrive: a drive that says it lost what was not flushed, when its test wants it: by
// another incarnation, or by a flush that fails.
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
  void fail_a_flush() { fails_a_flush_ = true; }
  Incarnation incarnation() const override {
    Incarnation now = FilterDrive::incarnation();
    now.opening += 2 * losses_;
    return now;
  }

 private:
  void start(DriveOp& op) override {
    if (op.request.kind == Request::Kind::kFlush && std::exchange(fails_a_flush_, false)) {
      return op.complete(fail(Errc::kIo, "writes were lost"));
    }
    pass(op);
  }

  uint64_t losses_ = 0;
  bool fails_a_flush_ = false;
};

}  // namespace cairn::drive
