// SPDX-License-Identifier: Apache-2.0
// CLI11's exceptions end here, and its messages do not leave: each mistake becomes one sentence
// that ends with how to see help.
#include "apps/common/command_tree.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "apps/common/command_tree.h"
#include "apps/common/help.h"
#include "apps/common/output.h"
#include "base/words.h"
#include "report/build_info.h"

namespace cairn::apps {

namespace {

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

int explain_renamed(const CommandTree::Renamed& renamed) {
  fmt::print(stderr, "cairn: 'cairn {}' is 'cairn {}' now. 'cairn {} --help' says more.\n",
             renamed.old_command, renamed.new_command, renamed.new_command);
  return kExitUsage;
}

int run_command(Command& command) {
  const Attempt<int> status = command.run();
  if (!finish_output()) return kExitFailed;
  if (status) return *status;
  fmt::print(stderr, "cairn: {}\n", status.error().text);
  return kExitFailed;
}

// The variable in which the program that starts another one says which build it is of.
constexpr const char* kStartedBy = "CAIRN_STARTED_BY";

std::string this_build() {
  const report::BuildInfo& info = report::build_info();
  return fmt::format("{} {}", info.version, info.commit);
}

// Becomes the other program, which lies in this one's folder.
int run_elsewhere(std::string_view program, std::span<const std::string> args) {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::string path = (self.parent_path() / program).string();
  std::vector<std::string> copies = {path};
  copies.insert(copies.end(), args.begin(), args.end());
  std::vector<char*> pointers;
  pointers.reserve(copies.size() + 1);
  for (std::string& each : copies) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  ::setenv(kStartedBy, this_build().c_str(), 1);
  ::execv(path.c_str(), pointers.data());
  const char* next = errno == ENOENT
                         ? "build it with './cairn bench --help', or put it beside this program"
                         : "see whether this user may run it";
  fmt::print(stderr, "cairn: 'cairn {}' is in {}, which cannot be started: {}.\n", args.front(),
             in_quotes(path), next);
  return kExitFailed;
}

}  // namespace

std::vector<std::string> args_of(int argc, char** argv) {
  if (argc <= 1) return {};
  return {argv + 1, argv + argc};
}

bool is_started_by_its_like(std::string_view program) {
  const char* const said = std::getenv(kStartedBy);
  const std::string starter = said == nullptr ? this_build() : said;
  ::unsetenv(kStartedBy);  // what this one starts is another matter
  if (starter == this_build()) return true;
  fmt::print(stderr,
             "cairn: cairn is of build {}, and {} beside it of {}: build both with './cairn bench "
             "--help', or put the two of one build beside each other.\n",
             in_quotes(starter), program, in_quotes(this_build()));
  return false;
}

int run_command_line(CommandTree& tree, std::span<const std::string> args) {
  if (const auto renamed = tree.renamed(args)) return explain_renamed(*renamed);
  if (!args.empty()) {
    if (const auto program = tree.program_of(args.front())) return run_elsewhere(*program, args);
  }
  try {
    // CLI11 takes the arguments last first.
    tree.root().parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::CallForHelp&) {
    say(tree.named().help());
    return finish_output() ? kExitOk : kExitFailed;
  } catch (const CLI::CallForVersion&) {
    return run_command(*tree.command_of(*tree.root().get_subcommand("version")));
  } catch (const CLI::ParseError& error) {
    return explain_error(tree.named(), error);
  }
  for (const CLI::App* app = &tree.root();;) {
    if (!app->remaining().empty()) return explain_stranger(*app, app->remaining().front());
    if (app->get_subcommands().empty()) break;
    app = app->get_subcommands().front();
  }
  CLI::App& app = tree.named();
  if (Command* command = tree.command_of(app)) return run_command(*command);
  if (&app != &tree.root()) {
    return explain(app, fmt::format("'{}' needs a command: {}", full_name(app),
                                    comma_list(command_names(app))));
  }
  fmt::print(stderr, "{}", app.help());
  return kExitUsage;
}

}  // namespace cairn::apps
