// SPDX-License-Identifier: Apache-2.0
// Opening a stack that a user named: one line of text to the drive on top.
//
//   Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(text);    // before the world
//   Attempt<std::unique_ptr<drive::Drive>> drive = co_await (*plan)->open(env);
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "apps/problem.h"
#include "drive/stack.h"
#include "env/env.h"
#include "fabric/host/uri.h"
#include "rest/place.h"
#include "task/task.h"

namespace cairn::apps {

// A stack whose words were all understood. Outlives the drives it opens.
class StackPlan final : private drive::Leaves {
 public:
  // Reads the line, looks host names up, and loads keys and profiles: may block, so not inside a
  // world. The Problem shows the place with a caret.
  static Attempt<std::unique_ptr<StackPlan>> prepare(std::string_view text);

  const drive::Stack& stack() const { return stack_; }
  // On `env`'s core, which also closes it. The Problem names the layer at fault.
  task::Task<Attempt<std::unique_ptr<drive::Drive>>> open(env::Env& env);
  // Lets go of the media, inside the world, when the drives are closed and destroyed.
  void close() { sources_.close(); }

 private:
  StackPlan();
  Attempt<void> prepare_leaves(const drive::Stack& layer, std::string_view text);
  Attempt<void> prepare_files(const drive::Stack& layer, std::string_view text);
  task::Task<Leaf> open(env::Env& env, std::string text) override;
  // Those the stack names were read before the world; one that a command names later is read then.
  std::expected<drive::FileContent, std::string> read_file(const std::string& path) override;

  drive::Stack stack_;
  std::map<std::string, drive::Spec> specs_;  // by the leaf's text
  std::map<std::string, fabric::Uri> uris_;
  std::map<std::string, drive::FileContent> files_;  // by path
  std::map<std::string, rest::Place> places_;        // behind HTTP
  drive::SourceLeaves sources_;
};

}  // namespace cairn::apps
