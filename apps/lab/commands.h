// SPDX-License-Identifier: Apache-2.0
// The commands that measure and plan, of the program cairn-lab.
#pragma once

#include <memory>

#include "apps/common/command.h"

namespace cairn::apps {

class CommandTree;

std::unique_ptr<Command> make_bench_drive(CLI::App& app);
std::unique_ptr<Command> make_bench_fabric(CLI::App& app);
std::unique_ptr<Command> make_bench_sim(CLI::App& app);
std::unique_ptr<Command> make_bench_paper_i10(CLI::App& app);
std::unique_ptr<Command> make_bench_paper_leapio(CLI::App& app);
std::unique_ptr<Command> make_bench_paper_snis(CLI::App& app);
std::unique_ptr<Command> make_bench_rocksdb(CLI::App& app);
std::unique_ptr<Command> make_bench_rpc(CLI::App& app);
std::unique_ptr<Command> make_bench_runtime(CLI::App& app);
std::unique_ptr<Command> make_sim_check(CLI::App& app);
std::unique_ptr<Command> make_sim_echo(CLI::App& app);
std::unique_ptr<Command> make_sim_fit(CLI::App& app);
std::unique_ptr<Command> make_sim_plan(CLI::App& app);
std::unique_ptr<Command> make_sim_snis(CLI::App& app);
std::unique_ptr<Command> make_sim_net(CLI::App& app);
std::unique_ptr<Command> make_sim_ssd(CLI::App& app);
std::unique_ptr<Command> make_bench_ycsb(CLI::App& app);

// Puts them into the tree.
void add_lab_commands(CommandTree& tree);

}  // namespace cairn::apps
