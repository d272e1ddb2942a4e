// SPDX-License-Identifier: Apache-2.0
// Command: one sub-command of cairn. Each has a file of its own with its make_ function.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/problem.h"
#include "apps/settings.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cairn::apps {

// Made with its options declared on a CLI::App that outlives it; run once, after they were parsed.
class Command {
 public:
  virtual ~Command() = default;
  Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Prints to stdout; returns the exit status. A Problem is printed to stderr, status kExitFailed.
  virtual Attempt<int> run() = 0;
};

std::unique_ptr<Command> make_up(CLI::App& app);
std::unique_ptr<Command> make_box(CLI::App& app);
std::unique_ptr<Command> make_box_ns_add(CLI::App& app);
std::unique_ptr<Command> make_box_ns_remove(CLI::App& app);
std::unique_ptr<Command> make_box_ns_resize(CLI::App& app);
std::unique_ptr<Command> make_box_ns_retry(CLI::App& app);
std::unique_ptr<Command> make_box_ns_list(CLI::App& app);
std::unique_ptr<Command> make_box_hosts_allow(CLI::App& app);
std::unique_ptr<Command> make_box_hosts_deny(CLI::App& app);
std::unique_ptr<Command> make_box_ana_set(CLI::App& app);
std::unique_ptr<Command> make_box_status(CLI::App& app);
std::unique_ptr<Command> make_box_stats(CLI::App& app);
std::unique_ptr<Command> make_box_metrics(CLI::App& app);
std::unique_ptr<Command> make_doctor(CLI::App& app);
std::unique_ptr<Command> make_doctor_tls(CLI::App& app);
std::unique_ptr<Command> make_bench_drive(CLI::App& app);
std::unique_ptr<Command> make_bench_fabric(CLI::App& app);
std::unique_ptr<Command> make_bench_sim(CLI::App& app);
std::unique_ptr<Command> make_bench_paper_i10(CLI::App& app);
std::unique_ptr<Command> make_bench_paper_leapio(CLI::App& app);
std::unique_ptr<Command> make_bench_paper_snis(CLI::App& app);
std::unique_ptr<Command> make_bench_rocksdb(CLI::App& app);
std::unique_ptr<Command> make_bench_runtime(CLI::App& app);
std::unique_ptr<Command> make_config_check(CLI::App& app);
std::unique_ptr<Command> make_drive_check(CLI::App& app);
std::unique_ptr<Command> make_drive_edit(CLI::App& app);
std::unique_ptr<Command> make_drive_key_new(CLI::App& app);
std::unique_ptr<Command> make_drive_list(CLI::App& app);
std::unique_ptr<Command> make_drive_move(CLI::App& app);
std::unique_ptr<Command> make_drive_replay(CLI::App& app);
std::unique_ptr<Command> make_drive_resize(CLI::App& app);
std::unique_ptr<Command> make_drive_serve(CLI::App& app);
std::unique_ptr<Command> make_drive_services(CLI::App& app);
std::unique_ptr<Command> make_drive_show(CLI::App& app);
std::unique_ptr<Command> make_drive_tell(CLI::App& app);
std::unique_ptr<Command> make_drive_retry(CLI::App& app);
std::unique_ptr<Command> make_drive_door_add(CLI::App& app);
std::unique_ptr<Command> make_drive_door_remove(CLI::App& app);
std::unique_ptr<Command> make_sim_check(CLI::App& app);
std::unique_ptr<Command> make_sim_echo(CLI::App& app);
std::unique_ptr<Command> make_sim_fit(CLI::App& app);
std::unique_ptr<Command> make_sim_plan(CLI::App& app);
std::unique_ptr<Command> make_sim_snis(CLI::App& app);
std::unique_ptr<Command> make_sim_net(CLI::App& app);
std::unique_ptr<Command> make_sim_ssd(CLI::App& app);
std::unique_ptr<Command> make_version(CLI::App& app);

// How commands declare what is the same in several of them.

// An option with a value, `spec` being "--cores LIST". `take` stores the value or returns the
// Problem with it, which the user sees after the option's name.
CLI::Option* add_value(CLI::App& app, std::string_view spec, std::string help,
                       std::function<Attempt<void>(const std::string&)> take);
// The same for an option that may be given several times; `take` is told each value in turn.
CLI::Option* add_values(CLI::App& app, std::string_view spec, std::string help,
                        std::function<Attempt<void>(const std::string&)> take);
CLI::Option* add_switch(CLI::App& app, std::string name, bool& into, std::string help);
// A number from `min` to `max`.
CLI::Option* add_number(CLI::App& app, std::string_view spec, double& into, double min, double max,
                        std::string help);
CLI::Option* add_integer(CLI::App& app, std::string_view spec, int& into, IntegerRange range,
                         std::string help);
// Bytes: "4096", "64K", "1GiB".
Attempt<uint64_t> parse_bytes(const std::string& text);
CLI::Option* add_size(CLI::App& app, std::string_view spec, uint64_t& into, std::string help);
// --io alone.
void add_io(CLI::App& app, std::optional<IoChoice>& io);
// --io, --cores, --poll, --config, --log-level.
void add_settings(CLI::App& app, SettingsOptions& options);
// Shown at the end of the command's help, one line each.
void set_examples(CLI::App& app, const std::vector<std::string>& lines);

}  // namespace cairn::apps
