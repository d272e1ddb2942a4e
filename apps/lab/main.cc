// SPDX-License-Identifier: Apache-2.0
// cairn-lab: every command, those that measure and plan included. `cairn` starts it by itself.
#include "apps/commands.h"
#include "apps/common/command_line.h"
#include "apps/common/command_reference.h"
#include "apps/common/command_tree.h"
#include "apps/lab/commands.h"
#include "base/problem.h"

int main(int argc, char** argv) {
  if (!cairn::apps::is_started_by_its_like("cairn-lab")) return cairn::kExitFailed;
  cairn::apps::CommandTree tree;
  cairn::apps::add_commands(tree);
  cairn::apps::add_lab_commands(tree);
  cairn::apps::add_last_commands(tree);
  tree.add(tree.root(), "help", "list every command, or write their reference",
           cairn::apps::make_help);
  return cairn::apps::run_command_line(tree, cairn::apps::args_of(argc, argv));
}
