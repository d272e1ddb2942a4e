// SPDX-License-Identifier: Apache-2.0
// A source whose drive on one core does not take a certain size.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/ids.h"
#include "drive/filter_drive.h"
#include "drive/source.h"

namespace cairn::drive {

class StubbornSource final : public Source {
 public:
  // `of` outlives it.
  StubbornSource(Source& of, CoreId core) : of_(of), core_(core) {}

  // Bytes; 0: all sizes are taken. While nothing is resized.
  void refuse(uint64_t bytes) { refused_ = bytes; }

  Result<std::unique_ptr<Drive>> open(env::Env& env) override {
    Result<std::unique_ptr<Drive>> drive = of_.open(env);
    if (!drive || env.core() != core_) return drive;
    return std::make_unique<StubbornDrive>(std::move(*drive), refused_);
  }

 private:
  class StubbornDrive final : public FilterDrive {
   public:
    StubbornDrive(std::unique_ptr<Drive> below, const uint64_t& refused)
        : FilterDrive(std::move(below)), refused_(refused) {}
    task::Task<Result<void>> resize(uint64_t blocks) override {
      if (blocks * geometry().block_size == refused_) {
        co_return fail(Errc::kNoSpace, "no such size here");
      }
      const Result<void> done = co_await FilterDrive::resize(blocks);
      co_return done;
    }

   private:
    void start(DriveOp& op) override { pass(op); }
    const uint64_t& refused_;
  };

  Source& of_;
  const CoreId core_;
  uint64_t refused_ = 0;
};

}  // namespace cairn::drive
