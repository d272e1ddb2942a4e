// SPDX-License-Identifier: Apache-2.0
// What served drives show beside themselves: NAME@VIEW is the view of a stack that calls itself so,
// a version of a snapshot drive for instance. Views that begin with "clone:" can be written.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "door/nbd/found_exports.h"
#include "drive/shared_drive.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::server {

struct ServedDrive;

class DriveViews final : public door::nbd::ExportFinder {
 public:
  // `drives` outlive this; views are given back before they close.
  DriveViews(env::Env& env, const std::vector<ServedDrive>& drives, bool read_only)
      : env_(env), drives_(drives), read_only_(read_only) {}

  task::Task<Result<door::nbd::ExportOptions>> find(std::string name) override;
  task::Task<void> give_back(drive::Source& source) override;

 private:
  env::Env& env_;
  const std::vector<ServedDrive>& drives_;
  const bool read_only_;
  std::vector<std::unique_ptr<drive::SharedDrive>> open_;
};

}  // namespace cairn::server
