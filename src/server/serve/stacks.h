// SPDX-License-Identifier: Apache-2.0
// BoxStacks: the stacks among a box's namespaces, open for as long as those are served.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/problem.h"
#include "env/env.h"
#include "nvme/controller/registry.h"
#include "server/open/stack_source.h"
#include "task/task.h"

namespace cairn::server {

// On the control core; close_all() comes last.
class BoxStacks {
 public:
  explicit BoxStacks(env::Env& env) : env_(env), shared_(env) {}

  // Opens the stack that `options` names, on one core after the other, and makes it their source.
  // Null: they name none, and nothing is changed. `format`: what its drives hold may be lost.
  task::Task<Attempt<std::unique_ptr<StackSource>>> open(nvme::NamespaceOptions& options,
                                                         bool format);
  // What became of it: the namespace is served, or could not be.
  void keep(const std::string& nqn, uint32_t nsid, std::unique_ptr<StackSource> stack);
  task::Task<void> drop(std::unique_ptr<StackSource> stack);
  using Stacks = std::map<std::pair<std::string, uint32_t>, std::unique_ptr<StackSource>>;
  // By NQN and nsid.
  const Stacks& all() const { return kept_; }
  // Null: it is no stack.
  StackSource* find(const std::string& nqn, uint32_t nsid);
  // The namespace is gone.
  task::Task<void> close(std::string nqn, uint32_t nsid);
  task::Task<void> close_all();

 private:
  env::Env& env_;
  drive::SharedSources shared_;
  Stacks kept_;
  uint32_t opened_ = 0;
};

}  // namespace cairn::server
