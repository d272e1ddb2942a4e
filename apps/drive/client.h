// SPDX-License-Identifier: Apache-2.0
// What the commands that ask a running `cairn drive serve` have in common.
#pragma once

#include <string>

#include "base/problem.h"
#include "base/units.h"
#include "env/env.h"
#include "server/control/control_format.h"
#include "task/task.h"

namespace CLI {
class App;
}

namespace cairn::apps {

class DriveClient {
 public:
  // Declares --control and --timeout.
  explicit DriveClient(CLI::App& app);

  // Asks the one process that serves the request's drive.
  Attempt<server::Json> ask(const server::ControlRequest& request) const;
  // Asks every process of this user that serves the drive, or any when none is named; their drives
  // as one answer, each with the socket it was asked at.
  task::Task<Attempt<server::Json>> ask_all(env::Env& env,
                                            const server::ControlRequest& request) const;

 private:
  task::Task<Attempt<server::Json>> ask_one(env::Env& env,
                                            const server::ControlRequest& request) const;
  task::Task<Attempt<std::vector<std::string>>> find(env::Env& env, std::string drive) const;
  task::Task<Attempt<server::Json>> exchange(env::Env& env, std::string path,
                                             const server::ControlRequest& request) const;

  std::string control_;  // empty: to be found
  double timeout_s_ = 60;
};

}  // namespace cairn::apps
