// SPDX-License-Identifier: Apache-2.0
// CLI11's exceptions end here, and its messages do not leave: each mistake becomes one sentence
// that ends with how to see help.
#include "apps/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "apps/bench_ycsb.h"
#include "apps/command.h"
#include "apps/command_reference.h"
#include "apps/drive_qemu_args.h"
#include "apps/help.h"
#include "apps/nvme/commands.h"
#include "apps/output.h"
#include "apps/rack_commands.h"
#include "apps/words.h"

namespace cairn::apps {

namespace {

// The tree of commands and what runs at its leaves.
class CommandLine {
 public:
  CommandLine() : root_("Cairn: one storage stack for disaggregated flash.", "cairn") {
    root_.formatter(std::make_shared<HelpFormatter>());
    prepare(root_);
    root_.set_version_flag("--version", "", "same as 'cairn version'");
    add(root_, "up", "run Cairn on this machine", make_up);
    CLI::App& doctor =
        add(root_, "doctor", "say what this machine can do, and what to mend", make_doctor);
    add(doctor, "tls", "which step towards a target through TLS fails", make_doctor_tls);
    add_box();
    CLI::App& drive = group(
        root_, "drive", "serve drives and stacks of services, and change them while they are used");
    add(drive, "serve", "serve drives and stacks over NBD and NVMe/TCP", make_drive_serve);
    add(drive, "list", "the drives that are served", make_drive_list);
    add(drive, "create", "make a drive of space that boxes of a rack spare", make_drive_create);
    add(drive, "release", "remove such a drive and give its space back", make_drive_release);
    add(drive, "show", "stacks as trees, with live figures", make_drive_show);
    add(drive, "edit", "change a stack while it is used", make_drive_edit);
    add(drive, "move", "run the layers of a drive in a box, and back, while it is used",
        make_drive_move);
    add(drive, "retry", "open a drive that could not be opened", make_drive_retry);
    add(drive, "resize", "change the size of a drive while it is used", make_drive_resize);
    add(drive, "qemu-args", "print the options with which QEMU uses a drive", make_drive_qemu_args);
    add(drive, "tell", "give a command to one layer of a stack", make_drive_tell);
    add(drive, "replay", "run the requests of a trace on a stack", make_drive_replay);
    add(drive, "check", "what a stack would be, or what is wrong with it", make_drive_check);
    add(drive, "services", "what stacks can be made of", make_drive_services);
    CLI::App& door = group(drive, "door", "doors of served drives for virtual machines");
    add(door, "add", "open another door while the drive is served", make_drive_door_add);
    add(door, "remove", "ask the guest for its device, and close the door", make_drive_door_remove);
    CLI::App& key = group(drive, "key", "keys of drives that encrypt");
    add(key, "new", "make a key", make_drive_key_new);
    CLI::App& rack = group(root_, "rack", "space that boxes offer each other");
    add(rack, "offers", "list who has how much space to spare", make_rack_offers);
    add(rack, "drives", "list the drives that were made of it", make_rack_drives);
    add(rack, "stack", "print such a drive's stack as 'cairn drive serve' takes it",
        make_rack_stack);
    add(rack, "serve", "serve the metadata of a rack on one machine", make_rack_serve);
    CLI::App& nvme = group(root_, "nvme", "use drives across the network");
    for (const NvmeVerb& verb : nvme_verbs()) add(nvme, verb.name, verb.what, verb.make);
    CLI::App& bench = group(root_, "bench", "measure this machine and Cairn on it");
    add(bench, "runtime", "streams and tasks against plain sockets", make_bench_runtime);
    add(bench, "drive", "what services and doors cost, each next to a baseline", make_bench_drive);
    add(bench, "fabric", "host and box against a bare exchange of the same bytes",
        make_bench_fabric);
    add(bench, "sim", "how fast the models are, and how true", make_bench_sim);
    add(bench, "rocksdb", "RocksDB on a drive of a box, with batching and without",
        make_bench_rocksdb);
    add(bench, "ycsb", "RocksDB with a YCSB-like load in a folder", make_bench_ycsb);
    CLI::App& paper = group(bench, "paper", "run a paper's evaluation with Cairn");
    add(paper, "i10", "figures of i10 as one page, next to the paper's", make_bench_paper_i10);
    add(paper, "snis", "tables and figures of SNIS as one page, next to the paper's",
        make_bench_paper_snis);
    add(paper, "leapio", "figures of LeapIO as one page, next to the paper's",
        make_bench_paper_leapio);
    CLI::App& sim = group(root_, "sim", "run Cairn in the simulated world");
    add(sim, "echo", "an echo cluster, from a seed", make_sim_echo);
    add(sim, "ssd", "one modelled SSD under a trace or a load", make_sim_ssd);
    add(sim, "snis", "drives and a network, simulated until they agree", make_sim_snis);
    add(sim, "plan", "how many drives, boxes and links a load needs", make_sim_plan);
    add(sim, "net", "a load on a modelled network", make_sim_net);
    add(sim, "fit", "a profile for a drive that fio measured", make_sim_fit);
    add(sim, "check", "the models against a reference", make_sim_check);
    CLI::App& config = group(root_, "config", "work with configuration files");
    add(config, "check", "check a configuration file", make_config_check);
    add(root_, "version", "print version, commit and compiler", make_version);
    add(root_, "help", "list every command, or write their reference", make_help);
    set_examples(root_, {"cairn up --io epoll --cores 0,1", "cairn COMMAND --help"});
  }

  CLI::App& root() { return root_; }
  Command& version() { return *command_of(*root_.get_subcommand("version")); }

  // The deepest command that was named.
  CLI::App& named() {
    CLI::App* app = &root_;
    while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
    return *app;
  }

  // Null for the root and for groups.
  Command* command_of(const CLI::App& app) {
    const auto leaf = std::ranges::find(leaves_, &app, &Leaf::first);
    return leaf == leaves_.end() ? nullptr : leaf->second.get();
  }

 private:
  using Leaf = std::pair<const CLI::App*, std::unique_ptr<Command>>;

  static void prepare(CLI::App& app) {
    app.allow_extras();            // strangers are explained by explain_stranger
    app.require_subcommand(0, 1);  // one command; that it is missing is explained too
    app.set_help_flag("-h,--help", "show this help");
  }
  static CLI::App& group(CLI::App& parent, const std::string& name, const std::string& what) {
    CLI::App& app = *parent.add_subcommand(name, what);
    prepare(app);
    app.footer("");  // the parent's examples are not its own
    return app;
  }
  CLI::App& add(CLI::App& parent, const std::string& name, const std::string& what,
                std::unique_ptr<Command> (*make)(CLI::App&)) {
    CLI::App& app = *parent.add_subcommand(name, what);
    prepare(app);
    leaves_.emplace_back(&app, make(app));
    return app;
  }
  // A command by itself, and over it those that ask a box that runs.
  void add_box() {
    CLI::App& box = add(root_, "box", "serve drives over NVMe/TCP", make_box);
    CLI::App& ns = group(box, "ns", "namespaces of a running box");
    add(ns, "list", "list the namespaces", make_box_ns_list);
    add(ns, "add", "serve another drive", make_box_ns_add);
    add(ns, "remove", "stop serving a namespace", make_box_ns_remove);
    add(ns, "resize", "change the size of a namespace", make_box_ns_resize);
    add(ns, "retry", "open a namespace that could not be opened", make_box_ns_retry);
    CLI::App& hosts = group(box, "hosts", "who may connect to a running box");
    add(hosts, "allow", "let a host connect", make_box_hosts_allow);
    add(hosts, "deny", "do not let a host connect", make_box_hosts_deny);
    CLI::App& ana = group(box, "ana", "how well namespaces are reached through a running box");
    add(ana, "set", "set the state of an ANA group", make_box_ana_set);
    add(box, "status", "what runs, and which hosts are connected", make_box_status);
    add(box, "stats", "what was read and written, and what connections do", make_box_stats);
    add(box, "metrics", "all counters, for Prometheus", make_box_metrics);
  }

  CLI::App root_;
  std::vector<Leaf> leaves_;
};

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

int explain(const CLI::App& app, std::string_view sentence) {
  const bool ends = sentence.ends_with('?');
  fmt::print(stderr, "cairn: {}{} '{} --help' says more.\n", sentence, ends ? "" : ".",
             full_name(app));
  return kExitUsage;
}

// A word that `app` does not know.
int explain_stranger(const CLI::App& app, const std::string& word) {
  if (word.starts_with('-') && word != "-" && word != "--") {
    const std::string option = word.substr(0, word.find('='));
    return explain(app, fmt::format("'{}' has no option {}{}", full_name(app), in_quotes(option),
                                    did_you_mean(option, option_names(app))));
  }
  const std::vector<std::string> names = command_names(app);
  if (names.empty()) {
    return explain(app, fmt::format("'{}' has no use for {}", full_name(app), in_quotes(word)));
  }
  const std::string meant = did_you_mean(word, names);
  return explain(app,
                 fmt::format("'{}' has no command {}{}", full_name(app), in_quotes(word), meant));
}

// What CLI11 objected to, in our words.
int explain_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::string what = error.what();
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) return explain(app, what);
  const std::string subject = what.substr(0, what.find_first_of(": "));
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    return explain(app, fmt::format("'{}' needs {}", full_name(app), subject));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const bool is_switch = what.find("flag override") != std::string::npos;
    if (is_switch) return explain(app, fmt::format("--{} takes no value", subject));
    return explain(app, fmt::format("{} needs a value", subject));
  }
  return explain(app, what);
}

int run_command(Command& command) {
  const Attempt<int> status = command.run();
  if (!finish_output()) return kExitFailed;
  if (status) return *status;
  fmt::print(stderr, "cairn: {}\n", status.error().text);
  return kExitFailed;
}

}  // namespace

int run_command_line(std::span<const std::string> words) {
  CommandLine line;
  try {
    // CLI11 takes the words last first.
    line.root().parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    say(line.named().help());
    return finish_output() ? kExitOk : kExitFailed;
  } catch (const CLI::CallForVersion&) {
    return run_command(line.version());
  } catch (const CLI::ParseError& error) {
    return explain_error(line.named(), error);
  }
  for (const CLI::App* app = &line.root();;) {
    if (!app->remaining().empty()) return explain_stranger(*app, app->remaining().front());
    if (app->get_subcommands().empty()) break;
    app = app->get_subcommands().front();
  }
  CLI::App& app = line.named();
  if (Command* command = line.command_of(app)) return run_command(*command);
  if (&app != &line.root()) {
    return explain(app, fmt::format("'{}' needs a command: {}", full_name(app),
                                    comma_list(command_names(app))));
  }
  fmt::print(stderr, "{}", app.help());
  return kExitUsage;
}

}  // namespace cairn::apps
