// SPDX-License-Identifier: Apache-2.0
// Drives as `cairn drive` names them, and the one place where such a text becomes a drive.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/problem.h"
#include "drive/source.h"
#include "env/env.h"
#include "server/open/open_stack.h"
#include "task/task.h"

namespace cairn::server {

// [NAME=]DRIVE or [NAME=]STACK, understood and not yet opened.
struct DriveArgs {
  std::string name;                  // empty: none was given
  std::string text;                  // of the drive, as it is from any folder
  drive::Spec spec;                  // of a single source, which every core opens for itself
  std::unique_ptr<StackPlan> stack;  // or of a stack, which one core opens for all
};
// As StackPlan::prepare.
Attempt<DriveArgs> parse_drive_args(std::string_view text, LookUp when);
// The DRIVE or STACK of such words.
std::string_view without_name(std::string_view args);
// A stack that a file holds as TOML: [NAME=]FILE.
Attempt<DriveArgs> read_stack_file(std::string_view text, LookUp when);

// A stack's home is the core `home`. What a process that was killed a moment ago still holds is
// waited for. Takes the words' plan. The Problem names the drive and what to do.
task::Task<Attempt<std::unique_ptr<drive::Source>>> open_drive(env::Env& env, DriveArgs& args,
                                                               CoreId home);

}  // namespace cairn::server
