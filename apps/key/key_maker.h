// SPDX-License-Identifier: Apache-2.0
// KeyMaker: a command that makes a new key and writes it to a file or the terminal.
#pragma once

#include <string>

#include "apps/common/command.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::apps {

class KeyMaker : public Command {
 public:
  Attempt<int> run() final;

 protected:
  // Declares --output, which follows the command's own options.
  void add_output(CLI::App& app);
  // The key as text, with the world's randomness. The caller wipes it.
  virtual std::string make(env::Env& env) = 0;

 private:
  static task::Task<Attempt<std::string>> make_line(KeyMaker& maker, env::Env& env);

  std::string output_;
};

}  // namespace cairn::apps
