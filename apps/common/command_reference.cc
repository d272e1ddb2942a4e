// SPDX-License-Identifier: Apache-2.0
#include "apps/common/command_reference.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "apps/common/completion.h"
#include "apps/common/help.h"
#include "apps/common/man_pages.h"
#include "apps/common/output.h"
#include "base/table.h"
#include "base/words.h"
#include "config/json_text.h"

namespace cairn::apps {

namespace {

constexpr std::string_view kIntroduction = R"(# The commands of `cairn`

Made from what `--help` says; after a change to a command make it again:

    ./cairn help --markdown > docs/commands.md

Every command takes `-h` and `--help`. `[X]` may be left out, and what stands in round brackets is
the default. Exit status: 0 done, 1 failed, 2 the arguments were not a command.

)";

// As text of a table, where none of its characters means something else.
std::string escaped_text(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (std::string_view("\\|<*`").contains(letter)) out += '\\';
    out += letter;
  }
  return out;
}

// As code in a table: there a bar ends the cell even between backticks.
std::string escaped_code(std::string_view text) {
  std::string out = "`";
  for (const char letter : text) {
    if (letter == '|') out += '\\';
    out += letter;
  }
  return out + "`";
}

// What GitHub calls a heading that is made of a command's words.
std::string anchor(std::string name) {
  std::ranges::replace(name, ' ', '-');
  return name;
}

// "use drives with any tool" as a sentence.
std::string sentence(std::string text) {
  const char first = text.front();
  if (first >= 'a' && first <= 'z') text.front() = static_cast<char>(first - 'a' + 'A');
  return text.ends_with('.') ? text : text + ".";
}

std::string table_of(std::string_view title, const HelpRows& rows) {
  if (rows.empty()) return "";
  std::string out = fmt::format("| {} | meaning |\n|---|---|\n", title);
  for (const auto& [name, what] : rows) {
    out += fmt::format("| {} | {} |\n", escaped_code(name), escaped_text(what));
  }
  return out + "\n";
}

std::string table_of_commands(const CLI::App& app) {
  std::string out = "| command | purpose |\n|---|---|\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string name = full_name(*command);
    out += fmt::format("| [`{}`](#{}) | {} |\n", name, anchor(name),
                       escaped_text(command->get_description()));
  }
  return out + "\n";
}

// What set_examples() was given, as code.
std::string examples_of(std::string_view footer) {
  constexpr std::string_view kTitle = "Examples:\n";
  if (!footer.starts_with(kTitle)) return "";
  std::string out = "Examples:\n\n    ";
  for (const char letter : footer.substr(kTitle.size() + 2)) {
    out += letter;
    if (letter == '\n') out += "  ";
  }
  return out + "\n\n";
}

std::string section(const CLI::App& app, size_t level) {
  CommandHelp help = help_of(app);
  help.options.pop_back();  // --help, which the introduction has
  std::string out = fmt::format("{} {}\n\n{}\n\n    {}\n\n", std::string(level, '#'),
                                full_name(app), sentence(app.get_description()), help.usage);
  if (!help.commands.empty()) out += table_of_commands(app);
  out += table_of("argument", help.arguments);
  out += table_of("option", help.options);
  out += examples_of(help.footer);
  for (const CLI::App* command : app.get_subcommands({})) out += section(*command, level + 1);
  return out;
}

// The tree in short: a line for each command and each group.
void list_commands(const CLI::App& app, std::vector<std::vector<std::string>>& rows) {
  for (const CLI::App* command : app.get_subcommands({})) {
    rows.push_back({full_name(*command), command->get_description()});
    list_commands(*command, rows);
  }
}

nlohmann::ordered_json rows_json(const HelpRows& rows) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& [name, what] : rows) all.push_back({{"name", name}, {"what", what}});
  return all;
}

// The tree as a list: each command and each group, in the order of --help.
void add_json(const CLI::App& app, nlohmann::ordered_json& all) {
  for (const CLI::App* command : app.get_subcommands({})) {
    const CommandHelp help = help_of(*command);
    all.push_back({{"name", full_name(*command)},
                   {"what", command->get_description()},
                   {"usage", help.usage},
                   {"commands", help.commands.size()},
                   {"arguments", rows_json(help.arguments)},
                   {"options", rows_json(help.options)}});
    add_json(*command, all);
  }
}

class HelpCommand final : public Command {
 public:
  explicit HelpCommand(CLI::App& app) : root_(*app.get_parent()) {
    add_switch(app, "--markdown", is_markdown_, "with usage and options, as docs/commands.md");
    add_switch(app, "--json", is_json_, "the same for programs");
    add_text(app, "--completion SHELL", shell_,
             "a script with which bash, zsh or fish complete commands and options");
    add_text(app, "--man DIR", man_folder_, "write a manual page for each command there");
    set_examples(
        app, {"cairn help", "cairn help --markdown > docs/commands.md",
              "source <(cairn help --completion bash)", "source <(cairn help --completion zsh)",
              "cairn help --completion fish | source", "cairn help --man ~/.local/share/man/man1"});
  }

  Attempt<int> run() override {
    if (is_markdown_ + is_json_ + !shell_.empty() + !man_folder_.empty() > 1) {
      return refuse("--markdown, --json, --completion and --man exclude each other: take one");
    }
    if (!shell_.empty()) {
      const Attempt<std::string> script = completion_script(root_, shell_);
      if (!script) return std::unexpected(script.error());
      say(*script);
      return kExitOk;
    }
    if (!man_folder_.empty()) return write_pages();
    if (is_markdown_) {
      say(command_reference(root_));
      return kExitOk;
    }
    if (is_json_) {
      nlohmann::ordered_json json = {{"schema_version", 1},
                                     {"commands", nlohmann::ordered_json::array()}};
      add_json(root_, json["commands"]);
      say(config::json_text(json));
      return kExitOk;
    }
    std::vector<std::vector<std::string>> rows;
    list_commands(root_, rows);
    say(table_text(rows));
    return kExitOk;
  }

 private:
  Attempt<int> write_pages() const {
    std::error_code error;
    std::filesystem::create_directories(man_folder_, error);
    const std::vector<ManPage> pages = man_pages(root_);
    for (const ManPage& page : pages) {
      const std::string path = (std::filesystem::path(man_folder_) / page.name).string();
      std::ofstream file(path, std::ios::trunc);
      file << page.text << std::flush;
      if (!file) {
        return refuse(
            fmt::format("cannot write {}: name a folder that you may write to", in_quotes(path)));
      }
    }
    say(fmt::format("wrote {} pages to {}\n  man -l {}\n", pages.size(), man_folder_,
                    (std::filesystem::path(man_folder_) / "cairn.1").string()));
    return kExitOk;
  }

  const CLI::App& root_;
  bool is_markdown_ = false;
  bool is_json_ = false;
  std::string shell_;
  std::string man_folder_;
};

}  // namespace

std::string command_reference(const CLI::App& root) {
  std::string out(kIntroduction);
  out += table_of_commands(root);
  for (const CLI::App* command : root.get_subcommands({})) out += section(*command, 2);
  out.pop_back();  // a section ends with an empty line
  return out;
}

std::unique_ptr<Command> make_help(CLI::App& app) { return std::make_unique<HelpCommand>(app); }

}  // namespace cairn::apps
