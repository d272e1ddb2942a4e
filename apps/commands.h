// SPDX-License-Identifier: Apache-2.0
// The commands that serve and use drives: each has a file of its own with its make_ function.
#pragma once

#include <memory>

#include "apps/common/command.h"

namespace cairn::apps {

class CommandTree;

std::unique_ptr<Command> make_serve(CLI::App& app);
std::unique_ptr<Command> make_status(CLI::App& app);
std::unique_ptr<Command> make_stats(CLI::App& app);
std::unique_ptr<Command> make_metrics(CLI::App& app);
std::unique_ptr<Command> make_host_list(CLI::App& app);
std::unique_ptr<Command> make_host_add(CLI::App& app);
std::unique_ptr<Command> make_host_remove(CLI::App& app);
std::unique_ptr<Command> make_doctor(CLI::App& app);
std::unique_ptr<Command> make_doctor_tls(CLI::App& app);
std::unique_ptr<Command> make_config_check(CLI::App& app);
std::unique_ptr<Command> make_drive_add(CLI::App& app);
std::unique_ptr<Command> make_drive_ana(CLI::App& app);
std::unique_ptr<Command> make_drive_check(CLI::App& app);
std::unique_ptr<Command> make_drive_edit(CLI::App& app);
std::unique_ptr<Command> make_drive_list(CLI::App& app);
std::unique_ptr<Command> make_drive_move(CLI::App& app);
std::unique_ptr<Command> make_drive_remove(CLI::App& app);
std::unique_ptr<Command> make_drive_replay(CLI::App& app);
std::unique_ptr<Command> make_drive_resize(CLI::App& app);
std::unique_ptr<Command> make_drive_services(CLI::App& app);
std::unique_ptr<Command> make_drive_show(CLI::App& app);
std::unique_ptr<Command> make_drive_snapshot(CLI::App& app);
std::unique_ptr<Command> make_drive_tell(CLI::App& app);
std::unique_ptr<Command> make_drive_retry(CLI::App& app);
std::unique_ptr<Command> make_drive_door_add(CLI::App& app);
std::unique_ptr<Command> make_drive_door_remove(CLI::App& app);
std::unique_ptr<Command> make_version(CLI::App& app);

// Puts them into the tree, up to and without what follows the groups of lab/commands.h.
void add_commands(CommandTree& tree);
// What every program has at the end: config, version.
void add_last_commands(CommandTree& tree);

}  // namespace cairn::apps
