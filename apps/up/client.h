// SPDX-License-Identifier: Apache-2.0
// What the commands have in common that ask a `cairn up` that runs.
#pragma once

#include <string>

#include "apps/common/command.h"
#include "base/problem.h"
#include "env/env.h"
#include "server/control/control_format.h"
#include "server/up/up_folder.h"
#include "task/task.h"

namespace cairn::apps {

// $XDG_DATA_HOME/cairn, or its usual value. The Problem: there is no home.
Attempt<std::string> default_up_folder();

// Who has this folder, which may be relative. The Problem: nobody.
Attempt<server::UpRunning> running_up(const std::string& folder);

class UpClient {
 public:
  // Declares --data.
  explicit UpClient(CLI::App& app);

  // The folder that is meant.
  Attempt<std::string> folder() const;
  // Who has it. The Problem: nobody.
  Attempt<server::UpRunning> find() const;
  // One request and its answer.
  static task::Task<Attempt<server::Json>> ask(env::Env& env, std::string control,
                                               server::ControlRequest request);

 private:
  std::string data_;
};

}  // namespace cairn::apps
