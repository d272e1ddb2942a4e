// SPDX-License-Identifier: Apache-2.0
// ForgetfulDrive: a drive that says it lost what was not flushed, when its test wants it: by
// another incarnation and the next flush, or by a flush that fails alone.
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
  void lose() {
    ++losses_;
    has_news_ = true;
  }
  void fail_a_flush() { fails_a_flush_ = true; }
  Incarnation incarnation() const override {
    Incarnation now = FilterDrive::incarnation();
    now.opening += 2 * losses_;
    return now;
  }

 private:
  void start(DriveOp& op) override {
    if (op.request.kind == Request::Kind::kFlush && must_fail(op.request)) {
      return op.complete(fail(Errc::kIo, "writes were lost"));
    }
    pass(op);
  }
  bool must_fail(const Request& flush) {
    if (std::exchange(fails_a_flush_, false)) return true;
    return !flush.knows_losses && std::exchange(has_news_, false);
  }

  uint64_t losses_ = 0;
  bool has_news_ = false;
  bool fails_a_flush_ = false;
};

}  // namespace cairn::drive
