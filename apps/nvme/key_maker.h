// SPDX-License-Identifier: Apache-2.0
// KeyMaker: a command that makes a new key and hands it over, to a file or the terminal.
#pragma once

#include <string>

#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "env/env.h"

namespace cairn::apps {

class KeyMaker : public Command {
 public:
  Attempt<int> run() final;

 protected:
  // The options of every such command, after its own.
  void add_options(CLI::App& app, std::string_view output_spec);
  // The key as text, with the world's randomness. It is wiped when it was handed over.
  virtual std::string make(env::Env& env) = 0;

 private:
  NvmeOptions options_;
  std::string output_;
};

}  // namespace cairn::apps
