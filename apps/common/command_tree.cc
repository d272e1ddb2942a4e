// SPDX-License-Identifier: Apache-2.0
#include "apps/common/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/common/help.h"

namespace cairn::apps {

namespace {

void prepare(CLI::App& app) {
  app.allow_extras();            // command_line.cc explains words that are no command
  app.require_subcommand(0, 1);  // one command; that it is missing is explained too
  app.set_help_flag("-h,--help", "show this help");
}

}  // namespace

CommandTree::CommandTree()
    : root_(
          std::make_unique<CLI::App>("Cairn: one storage stack for disaggregated flash", "cairn")) {
  root_->formatter(make_help_formatter());
  prepare(*root_);
  root_->set_version_flag("--version", "", "same as 'cairn version'")->group("");
}

CommandTree::~CommandTree() = default;

CLI::App& CommandTree::group(CLI::App& parent, const std::string& name, const std::string& what) {
  CLI::App& app = *parent.add_subcommand(name, what);
  prepare(app);
  app.footer("");  // the parent's examples are not its own
  return app;
}

CLI::App& CommandTree::add(CLI::App& parent, const std::string& name, const std::string& what,
                           std::unique_ptr<Command> (*make)(CLI::App&)) {
  CLI::App& app = group(parent, name, what);
  leaves_.emplace_back(&app, make(app));
  return app;
}

void CommandTree::add_elsewhere(const std::string& name, const std::string& what,
                                std::string_view program) {
  group(*root_, name, what);
  elsewhere_.emplace_back(name, program);
}

std::optional<std::string_view> CommandTree::program_of(std::string_view word) const {
  const auto found = std::ranges::find(
      elsewhere_, word, [](const auto& each) { return std::string_view(each.first); });
  if (found == elsewhere_.end()) return std::nullopt;
  return found->second;
}

void CommandTree::add_renamed(std::string_view old_command, std::string_view new_command) {
  renamed_.push_back({.old_command = old_command, .new_command = new_command});
}

std::optional<CommandTree::Renamed> CommandTree::renamed(std::span<const std::string> args) const {
  std::string said;
  for (const std::string& word : args) {
    said += (said.empty() ? "" : " ") + word;
    const auto found = std::ranges::find(renamed_, said, &Renamed::old_command);
    if (found != renamed_.end()) return *found;
  }
  return std::nullopt;
}

CLI::App& CommandTree::named() {
  CLI::App* app = root_.get();
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

Command* CommandTree::command_of(const CLI::App& app) {
  const auto leaf = std::ranges::find(leaves_, &app, [](const auto& each) { return each.first; });
  return leaf == leaves_.end() ? nullptr : leaf->second.get();
}

}  // namespace cairn::apps
