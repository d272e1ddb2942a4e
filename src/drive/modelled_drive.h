// SPDX-License-Identifier: Apache-2.0
// A drive that stores real data and takes as long as a modelled SSD would.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "drive/drive.h"
#include "drive/modelled_medium.h"
#include "env/env.h"
#include "task/gate.h"

namespace cairn::drive {

// Each request completes when the model says it is done: in real time on a real core, in virtual
// time in the simulator. The drive below is asked then, or before if it needs no waiting. Keeps its
// size.
//
// The drive below decides what survives a crash. It hears of a flush or a durable write only when
// the model's flash has what that is about, so whatever a crash takes was at stake in the modelled
// drive too.
class ModelledDrive final : public Drive {
 public:
  // kInvalid when `below` is larger than the medium.
  static Result<std::unique_ptr<ModelledDrive>> make(env::Env& env, std::unique_ptr<Drive> below,
                                                     ModelledMedium& medium);

  const Geometry& geometry() const override { return geometry_; }
  Incarnation incarnation() const override { return below_->incarnation(); }
  ModelledMedium& medium() const { return medium_; }
  // Waits for what the model was asked, cancelled requests included.
  task::Task<void> close() override;

 private:
  struct Ticket : ModelledMedium::Ticket {
    explicit Ticket(ModelledDrive& owner)
        : ModelledMedium::Ticket(&Ticket::came_back), drive(owner) {}
    static void came_back(ModelledMedium::Ticket& ticket) {
      auto& own = static_cast<Ticket&>(ticket);
      own.drive.pass_on(own);
    }
    ModelledDrive& drive;
    DriveOp* op = nullptr;              // null: cancelled
    std::optional<Result<void>> moved;  // the data was, before the time had passed
  };

  ModelledDrive(env::Env& env, std::unique_ptr<Drive> below, ModelledMedium& medium);
  void start(DriveOp& op) override;
  void cancel(DriveOp& op) override;
  Ticket& free_ticket();
  void pass_on(Ticket& ticket);
  task::Task<void> run(DriveOp& op);

  env::Env& env_;
  std::unique_ptr<Drive> below_;
  ModelledMedium& medium_;
  Geometry geometry_;
  std::vector<std::unique_ptr<Ticket>> tickets_;
  std::vector<Ticket*> free_;
  task::Gate gate_;  // tickets on their way, and requests below
};

}  // namespace cairn::drive
