// SPDX-License-Identifier: Apache-2.0
#include "apps/common/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/help.h"
#include "base/words.h"

namespace cairn::apps {

namespace {

struct OptionEntry {
  std::vector<std::string> names;  // "-h", "--help"
  bool takes_value = false;
  std::string what;
};

// A command and what may follow it.
struct CommandEntry {
  std::string path;  // "/drive/list"; empty for cairn itself
  HelpRows commands;
  std::vector<OptionEntry> options;
};

// "--cores LIST", "-h, --help": as help_of() has them.
OptionEntry option_entry(const std::string& left, std::string what) {
  OptionEntry option{.names = {}, .what = std::move(what)};
  std::string_view rest = left;
  while (rest.starts_with('-')) {
    const std::string_view name = rest.substr(0, rest.find_first_of(", "));
    option.names.emplace_back(name);
    rest.remove_prefix(name.size());
    if (!rest.starts_with(", ")) break;
    rest.remove_prefix(2);
  }
  option.takes_value = !rest.empty();
  return option;
}

void add_entries(const CLI::App& app, const std::string& path, std::vector<CommandEntry>& entries) {
  const CommandHelp help = help_of(app);
  CommandEntry command{.path = path, .commands = {}, .options = {}};
  for (const CLI::App* each : app.get_subcommands({})) {
    command.commands.emplace_back(each->get_name(), each->get_description());
  }
  for (const auto& [left, what] : help.options) command.options.push_back(option_entry(left, what));
  entries.push_back(std::move(command));
  for (const CLI::App* each : app.get_subcommands({})) {
    add_entries(*each, path + "/" + each->get_name(), entries);
  }
}

// Between single quotes, in every one of the shells.
std::string quoted(std::string_view text, std::string_view for_quote) {
  std::string out = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      out += for_quote;
    } else {
      out += letter;
    }
  }
  return out + "'";
}
std::string sh_quoted(std::string_view text) { return quoted(text, "'\\''"); }
std::string fish_quoted(std::string_view text) {
  std::string doubled;
  for (const char letter : text) {
    if (letter == '\\') doubled += '\\';
    doubled += letter;
  }
  return quoted(doubled, "\\'");
}

std::string all_paths(const std::vector<CommandEntry>& entries) {
  std::vector<std::string> paths;
  for (const CommandEntry& each : entries) {
    if (!each.path.empty()) paths.push_back(each.path);
  }
  return fmt::format("{}", fmt::join(paths, "|"));
}

std::vector<std::string> names_of(const CommandEntry& command, bool only_with_value) {
  std::vector<std::string> names;
  for (const OptionEntry& option : command.options) {
    if (only_with_value && !option.takes_value) continue;
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

std::string bash_script(const std::vector<CommandEntry>& entries) {
  std::string out = R"(# bash completion for cairn: made by 'cairn help --completion bash'
_cairn() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local place= i commands= options= values=
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$place/${COMP_WORDS[i]}" in
)";
  out += fmt::format("      {}) place+=/${{COMP_WORDS[i]}} ;;\n", all_paths(entries));
  out += "    esac\n  done\n  case \"$place\" in\n";
  for (const CommandEntry& each : entries) {
    std::vector<std::string> commands;
    for (const auto& [name, what] : each.commands) commands.push_back(name);
    out += fmt::format("    '{}') commands='{}' options='{}' values='{}' ;;\n", each.path,
                       fmt::join(commands, " "), fmt::join(names_of(each, false), " "),
                       fmt::join(names_of(each, true), " "));
  }
  out += R"(  esac
  COMPREPLY=()
  if [[ " $values " == *" $prev "* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  elif [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
  elif [[ -n $commands ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  fi
}
complete -o filenames -F _cairn cairn
)";
  return out;
}

// "name:what", with colons of the name's own escaped.
std::string zsh_item(std::string_view name, std::string_view what) {
  std::string text;
  for (const char letter : name) {
    if (letter == ':' || letter == '\\') text += '\\';
    text += letter;
  }
  return sh_quoted(fmt::format("{}:{}", text, what));
}

std::string zsh_script(const std::vector<CommandEntry>& entries) {
  std::string out = R"(#compdef cairn
# zsh completion for cairn: made by 'cairn help --completion zsh'
_cairn() {
  local place= i
  local -a commands options values
  for ((i = 2; i < CURRENT; ++i)); do
    case "$place/${words[i]}" in
)";
  out += fmt::format("      {}) place+=/${{words[i]}} ;;\n", all_paths(entries));
  out += "    esac\n  done\n  case \"$place\" in\n";
  for (const CommandEntry& each : entries) {
    std::vector<std::string> commands;
    for (const auto& [name, what] : each.commands) commands.push_back(zsh_item(name, what));
    std::vector<std::string> options;
    for (const OptionEntry& option : each.options) {
      for (const std::string& name : option.names) options.push_back(zsh_item(name, option.what));
    }
    out += fmt::format("    '{}')\n      commands=({})\n      options=({})\n      values=({}) ;;\n",
                       each.path, fmt::join(commands, " "), fmt::join(options, " "),
                       fmt::join(names_of(each, true), " "));
  }
  out += R"(  esac
  if (( ${values[(Ie)${words[CURRENT-1]}]} )); then
    _files
  elif [[ ${words[CURRENT]} == -* ]]; then
    _describe -o option options
  elif (( $#commands )); then
    _describe command commands
  else
    _files
  fi
}
if [[ ${funcstack[1]} == _cairn ]]; then
  _cairn "$@"
else
  compdef _cairn cairn
fi
)";
  return out;
}

std::string fish_script(const std::vector<CommandEntry>& entries) {
  std::string out = R"(# fish completion for cairn: made by 'cairn help --completion fish'
function __cairn_place
  set -l place cairn
  for word in (commandline -opc)[2..-1]
    switch "$place/$word"
)";
  std::vector<std::string> whole;
  for (const CommandEntry& each : entries) {
    if (!each.path.empty()) whole.push_back("cairn" + each.path);
  }
  out += fmt::format("      case {}\n        set place \"$place/$word\"\n", fmt::join(whole, " "));
  out += "    end\n  end\n  test \"$place\" = \"cairn$argv[1]\"\nend\ncomplete -c cairn -e\n";
  for (const CommandEntry& each : entries) {
    const std::string when = fmt::format("-n \"__cairn_place '{}'\"", each.path);
    for (const auto& [name, what] : each.commands) {
      out += fmt::format("complete -c cairn {} -f -a {} -d {}\n", when, name, fish_quoted(what));
    }
    for (const OptionEntry& option : each.options) {
      std::string names;
      for (const std::string& name : option.names) {
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      out += fmt::format("complete -c cairn {}{}{} -d {}\n", when, names,
                         option.takes_value ? " -r" : "", fish_quoted(option.what));
    }
  }
  return out;
}

}  // namespace

Attempt<std::string> completion_script(const CLI::App& root, std::string_view shell) {
  std::vector<CommandEntry> entries;
  add_entries(root, "", entries);
  if (shell == "bash") return bash_script(entries);
  if (shell == "zsh") return zsh_script(entries);
  if (shell == "fish") return fish_script(entries);
  return refuse(
      fmt::format("{} is no shell that is known: write bash, zsh or fish", in_quotes(shell)));
}

}  // namespace cairn::apps
