// SPDX-License-Identifier: Apache-2.0
#include "apps/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace cairn::apps {

namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

// Two aligned columns under a title; nothing when there are no rows.
std::string block(std::string_view title, const Rows& rows) {
  if (rows.empty()) return "";
  size_t width = 0;
  for (const auto& [left, right] : rows) width = std::max(width, left.size());
  std::string out = fmt::format("\n{}:\n", title);
  for (const auto& [left, right] : rows) {
    out += fmt::format("  {:<{}}  {}\n", left, width, right);
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

std::string HelpFormatter::make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const {
  std::string usage = full_name(*app);
  Rows commands;
  for (const CLI::App* command : app->get_subcommands({})) {
    commands.emplace_back(command->get_name(), command->get_description());
  }
  Rows options;
  Rows positionals;
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_positional()) {
      const std::string name = option->get_name(true);
      positionals.emplace_back(option->get_required() ? name : fmt::format("[{}]", name),
                               option->get_description());
    } else {
      options.emplace_back(left_column(*option), option->get_description());
    }
  }
  std::ranges::rotate(options, options.begin() + 1);  // help, declared first, comes last
  const bool is_root = app->get_parent() == nullptr;
  const bool has_options = options.size() > 1 && !is_root;
  if (!commands.empty()) usage += has_options ? " [COMMAND]" : " COMMAND";
  if (has_options) usage += " [OPTIONS]";
  for (const auto& [name, help] : positionals) usage += " " + name;

  const std::string title = is_root
                                ? app->get_description()
                                : fmt::format("{}: {}", full_name(*app), app->get_description());
  std::string out = fmt::format("{}\n\nUsage: {}\n", title, usage);
  out += block("Commands", commands);
  out += block("Arguments", positionals);
  out += block("Options", options);
  if (!app->get_footer().empty()) out += fmt::format("\n{}\n", app->get_footer());
  return out;
}

}  // namespace cairn::apps
