// SPDX-License-Identifier: Apache-2.0
// How --help looks: what the command does, its usage, options and commands in two columns,
// examples.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace cairn::apps {

// "cairn config check": the words that lead to this command.
std::string full_name(const CLI::App& app);

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace cairn::apps
