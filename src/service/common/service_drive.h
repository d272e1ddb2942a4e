// SPDX-License-Identifier: Apache-2.0
// ServiceDrive: what services have in common. Each request runs as a task over the drives below.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "drive/drive.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::drive {

// A subclass says how a request runs and fills in geometry_. Cancellation reaches the drives below
// by the request's token; run() passes it on with whatever it waits for.
class ServiceDrive : public Drive {
 public:
  const Geometry& geometry() const override { return geometry_; }
  // Of the drives below together: it changes when one of theirs does. Unknown if one of theirs is.
  Incarnation incarnation() const override;
  // Waits for its tasks, then closes the drives below.
  task::Task<void> close() override;

 protected:
  explicit ServiceDrive(std::vector<std::unique_ptr<Drive>> below) : below_(std::move(below)) {}

  virtual task::Task<Result<void>> run(DriveOp& op) = 0;
  // The same where the service knows each drive by a label, and opens with no other in its place.
  Incarnation labelled_incarnation() const;

  Drive& below(size_t index = 0) { return *below_[index]; }
  const Drive& below(size_t index = 0) const { return *below_[index]; }
  size_t below_count() const { return below_.size(); }
  task::Gate& gate() { return gate_; }

  Geometry geometry_;

 private:
  void start(DriveOp& op) final { gate_.spawn(serve(op)); }
  void cancel(DriveOp&) final {}
  task::Task<void> serve(DriveOp& op);

  std::vector<std::unique_ptr<Drive>> below_;
  task::Gate gate_;
};

}  // namespace cairn::drive
