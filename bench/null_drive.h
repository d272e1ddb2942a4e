// SPDX-License-Identifier: Apache-2.0
// NullDrive: completes every request at once and stores nothing. What a load costs on it is what
// the load itself costs.
#pragma once

#include "drive/drive.h"

namespace cairn::bench {

class NullDrive final : public drive::Drive {
 public:
  explicit NullDrive(const drive::Geometry& geometry) : geometry_(geometry) {}
  const drive::Geometry& geometry() const override { return geometry_; }

 private:
  void start(drive::DriveOp& op) override { op.complete({}); }
  void cancel(drive::DriveOp&) override {}  // none is ever in flight
  drive::Geometry geometry_;
};

}  // namespace cairn::bench
