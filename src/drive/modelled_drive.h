// SPDX-License-Identifier: Apache-2.0
// A drive that stores real data and takes as long as a modelled SSD would.
#pragma once

#include <memory>
#include <vector>

#include "base/histogram.h"
#include "drive/drive.h"
#include "env/env.h"
#include "model/flash/model.h"
#include "task/gate.h"

namespace cairn::drive {

// Each request goes to the model first and to the drive below when the model says it is done: in
// real time on a real core, in virtual time in the simulator. Used on one core.
class ModelledDrive final : public Drive, private flash::CompletionSink {
 public:
  // kInvalid when the parameters make no drive, or one smaller than `below`.
  static Result<std::unique_ptr<ModelledDrive>> make(env::Env& env, std::unique_ptr<Drive> below,
                                                     const flash::Parameters& parameters);

  const Geometry& geometry() const override { return below_->geometry(); }
  task::Task<void> close() override;

  const flash::FlashModel& model() const { return model_; }
  // How much later than the model said requests went on, in nanoseconds.
  const Histogram& lateness() const { return lateness_; }

 private:
  struct Wake : task::Timer {
    explicit Wake(ModelledDrive& owner) : Timer(&Wake::fired), drive(owner) {}
    static void fired(task::Timer& timer) { static_cast<Wake&>(timer).drive.pump(); }
    ModelledDrive& drive;
  };

  ModelledDrive(env::Env& env, std::unique_ptr<Drive> below, const flash::Parameters& parameters);
  void start(DriveOp& op) override;
  void cancel(DriveOp& op) override;
  void completed(const flash::Completion& completion) override;
  flash::Nanos model_now() const { return (env_.now() - epoch_).ns; }
  void pump();
  task::Task<void> run(DriveOp& op);

  env::Env& env_;
  std::unique_ptr<Drive> below_;
  flash::FlashModel model_;
  const Time epoch_;
  Wake wake_;
  task::Gate gate_;
  std::vector<DriveOp*> waiting_;  // by cookie; null when cancelled
  std::vector<uint32_t> free_;
  Histogram lateness_;
};

}  // namespace cairn::drive
