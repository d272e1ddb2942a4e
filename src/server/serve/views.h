// SPDX-License-Identifier: Apache-2.0
// What served drives show beside themselves: NAME@VIEW is the view of a stack that calls itself so,
// a version of a snapshot drive for instance. Views that begin with "clone:" can be written.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "door/nbd/found_exports.h"
#include "drive/shared_drive.h"
#include "env/env.h"
#include "server/serve/served_drive.h"
#include "task/task.h"

namespace cairn::server {

class DriveViews final : public door::nbd::ExportFinder {
 public:
  // `drives` outlive this; views are given back before they close.
  DriveViews(env::Env& env, const ServedDrives& drives) : env_(env), drives_(drives) {}

  task::Task<Result<door::ExportOptions>> find(std::string name) override;
  task::Task<void> give_back(drive::Source& source) override;
  // Whether somebody uses a view of the drive.
  bool are_open(std::string_view drive) const;

 private:
  env::Env& env_;
  struct Open {
    std::string drive;
    std::unique_ptr<drive::SharedDrive> view;
  };
  const ServedDrives& drives_;
  std::vector<Open> open_;
};

}  // namespace cairn::server
