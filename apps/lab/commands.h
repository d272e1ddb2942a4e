// SPDX-License-Identifier: Apache-2.0
// The commands that measure and plan, of the program cairn-lab.
#pragma once

#include <memory>

#include "apps/common/command.h"

namespace cairn::apps {

class CommandTree;

std::unique_ptr<Command> make_bench_drive(CLI::App& app);
std::unique_ptr<Command> make_bench_fabric(CLI::App& app);
std::unique_ptr<Command> make_bench_kv(CLI::App& app);
std::unique_ptr<Command> make_bench_sim(CLI::App& app);
std::unique_ptr<Command> make_bench_paper_i10(CLI::App& app);
std::unique_ptr<Command> make_bench_paper_leapio(CLI::App& app);
std::unique_ptr<Command> make_bench_paper_snis(CLI::App& app);
std::unique_ptr<Command> make_bench_rocksdb(CLI::App& app);
std::unique_ptr<Command> make_bench_rpc(CLI::App& app);
std::unique_ptr<Command> make_bench_runtime(CLI::App& app);
std::unique_ptr<Command> make_bench_volume(CLI::App& app);
std::unique_ptr<Command> make_bench_ycsb(CLI::App& app);
std::unique_ptr<Command> make_plan_capacity(CLI::App& app);
std::unique_ptr<Command> make_plan_fit(CLI::App& app);
std::unique_ptr<Command> make_plan_net(CLI::App& app);
std::unique_ptr<Command> make_plan_snis(CLI::App& app);
std::unique_ptr<Command> make_plan_ssd(CLI::App& app);
std::unique_ptr<Command> make_plan_validate(CLI::App& app);
std::unique_ptr<Command> make_sim_echo(CLI::App& app);

// Puts them into the tree.
void add_lab_commands(CommandTree& tree);

}  // namespace cairn::apps
