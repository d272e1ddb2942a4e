// SPDX-License-Identifier: Apache-2.0
// SeenSource: another source, whose drives note what they are asked.
#pragma once

#include <memory>
#include <utility>

#include "drive/filter_drive.h"
#include "drive/source.h"

namespace cairn::drive {

class SeenSource final : public Source {
 public:
  struct Counts {
    int transfers = 0;
    int unstable = 0;  // of these, with memory that somebody else can change
    int flushes = 0;
  };
  explicit SeenSource(std::unique_ptr<Source> source) : source_(std::move(source)) {}

  Result<std::unique_ptr<Drive>> open(env::Env& env) override {
    Result<std::unique_ptr<Drive>> drive = source_->open(env);
    if (!drive) return drive;
    return std::make_unique<SeenDrive>(std::move(*drive), counts_);
  }
  task::Task<void> close(env::Env& env) override { return source_->close(env); }
  const Counts& counts() const { return counts_; }

 private:
  class SeenDrive final : public FilterDrive {
   public:
    SeenDrive(std::unique_ptr<Drive> below, Counts& counts)
        : FilterDrive(std::move(below)), counts_(counts) {}

   private:
    void start(DriveOp& op) override {
      if (op.request.kind == Request::Kind::kFlush) ++counts_.flushes;
      if (!op.data().empty()) {
        ++counts_.transfers;
        counts_.unstable += op.request.unstable_memory ? 1 : 0;
      }
      pass(op);
    }
    Counts& counts_;
  };

  std::unique_ptr<Source> source_;
  Counts counts_;
};

}  // namespace cairn::drive
