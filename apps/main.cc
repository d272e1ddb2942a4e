// SPDX-License-Identifier: Apache-2.0
// cairn: serves drives and uses them. What measures and plans is in cairn-lab (lab/main.cc), which
// is larger, and built when it is first asked for.
#include "apps/commands.h"
#include "apps/common/command_line.h"
#include "apps/common/command_tree.h"

int main(int argc, char** argv) {
  constexpr const char* kLab = "cairn-lab";
  cairn::apps::CommandTree tree;
  cairn::apps::add_commands(tree);
  tree.add_elsewhere("bench", "measure this machine and Cairn on it", kLab);
  tree.add_elsewhere("plan", "models of drives and networks, for planning", kLab);
  tree.add_elsewhere("sim", "run Cairn in the simulated world", kLab);
  cairn::apps::add_last_commands(tree);
  tree.add_elsewhere("help", "list every command, or write their reference", kLab);
  return cairn::apps::run_command_line(tree, cairn::apps::args_of(argc, argv));
}
