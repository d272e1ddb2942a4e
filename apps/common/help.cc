// SPDX-License-Identifier: Apache-2.0
#include "apps/common/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace cairn::apps {

namespace {

constexpr size_t kColumns = 100;
// A right column that is narrower is not worth breaking lines for.
constexpr size_t kColumnsMin = 40;

// `text` in lines of at most `width`, broken at spaces.
std::vector<std::string_view> wrapped(std::string_view text, size_t width) {
  std::vector<std::string_view> lines;
  while (text.size() > width) {
    size_t space = text.rfind(' ', width);
    if (space == text.npos) space = text.find(' ', width);
    if (space == text.npos) break;
    lines.push_back(text.substr(0, space));
    text.remove_prefix(space + 1);
  }
  lines.push_back(text);
  return lines;
}

// Two aligned columns under a title; nothing when there are no rows.
std::string block(std::string_view title, const HelpRows& rows) {
  if (rows.empty()) return "";
  size_t width = 0;
  for (const auto& [left, right] : rows) width = std::max(width, left.size());
  const size_t used = width + 4;
  const size_t room = std::max(kColumns - std::min(used, kColumns), kColumnsMin);
  std::string out = fmt::format("\n{}:\n", title);
  for (const auto& [left, right] : rows) {
    std::string_view name = left;
    for (const std::string_view line : wrapped(right, room)) {
      out += fmt::format("  {:<{}}  {}\n", name, width, line);
      name = "";
    }
  }
  return out;
}

// "--cores LIST", "-h, --help".
std::string left_column(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (!option.get_option_text().empty()) text += " " + option.get_option_text();
  return text;
}

}  // namespace

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

CommandHelp help_of(const CLI::App& app) {
  std::string needed;
  CommandHelp help{.usage = full_name(app),
                   .commands = {},
                   .arguments = {},
                   .options = {},
                   .footer = app.get_footer()};
  for (const CLI::App* command : app.get_subcommands({})) {
    help.commands.emplace_back(command->get_name(), command->get_description());
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // another row says it
    if (option->get_positional()) {
      const std::string name = option->get_name(true);
      help.arguments.emplace_back(option->get_required() ? name : fmt::format("[{}]", name),
                                  option->get_description());
    } else {
      help.options.emplace_back(left_column(*option), option->get_description());
      if (option->get_required()) needed += " " + left_column(*option);
    }
  }
  std::ranges::rotate(help.options, help.options.begin() + 1);  // --help, declared first, is last
  const bool has_options = help.options.size() > 1 && app.get_parent() != nullptr;
  if (!help.commands.empty()) help.usage += has_options ? " [COMMAND]" : " COMMAND";
  help.usage += needed;
  if (has_options) help.usage += " [OPTIONS]";
  for (const auto& [name, what] : help.arguments) help.usage += " " + name;
  return help;
}

namespace {

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    const CommandHelp help = help_of(*app);
    const bool is_root = app->get_parent() == nullptr;
    const std::string title = is_root
                                  ? app->get_description()
                                  : fmt::format("{}: {}", full_name(*app), app->get_description());
    // All commands fit a screen, which leaves one line for the rest.
    std::string out = is_root ? fmt::format("Usage: {} [--help]   ({})\n", help.usage, title)
                              : fmt::format("{}\n\nUsage: {}\n", title, help.usage);
    const std::string commands = block("Commands", help.commands);
    out += is_root ? commands.substr(1) : commands;
    out += block("Arguments", help.arguments);
    if (!is_root) out += block("Options", help.options);
    if (!help.footer.empty()) out += fmt::format("\n{}\n", help.footer);
    return out;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> make_help_formatter() {
  return std::make_shared<HelpFormatter>();
}

}  // namespace cairn::apps
