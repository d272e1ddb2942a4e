// SPDX-License-Identifier: Apache-2.0
#include "apps/common/man_pages.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "apps/common/help.h"

namespace cairn::apps {

namespace {

// So that roff shows every character as it is: no line of text is a request.
std::string roff(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";
  for (const char letter : text) {
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else if (letter == '\'') {
      out += "\\(aq";
    } else if (letter == '^') {
      out += "\\(ha";
    } else if (letter == '~') {
      out += "\\(ti";
    } else if (letter == '`') {
      out += "\\(ga";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string page_name(const CLI::App& app) {
  std::string name = full_name(app);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string rows_text(std::string_view title, const HelpRows& rows) {
  if (rows.empty()) return "";
  std::string out = fmt::format(".SH {}\n", title);
  for (const auto& [left, right] : rows) {
    out += fmt::format(".TP\n.B {}\n{}\n", roff(left), roff(right));
  }
  return out;
}

std::string examples_text(std::string_view footer) {
  constexpr std::string_view kTitle = "Examples:\n";
  if (!footer.starts_with(kTitle)) return "";
  std::string out = ".SH EXAMPLES\n.nf\n";
  std::string_view rest = footer.substr(kTitle.size());
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    out += roff(line.substr(std::min(line.find_first_not_of(' '), line.size()))) + "\n";
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return out + ".fi\n";
}

std::string see_also(const CLI::App& app) {
  std::vector<std::string> names;
  if (const CLI::App* parent = app.get_parent(); parent != nullptr) {
    names.push_back(page_name(*parent));
  }
  for (const CLI::App* each : app.get_subcommands({})) names.push_back(page_name(*each));
  if (names.empty()) return "";
  std::string out = ".SH SEE ALSO\n";
  for (size_t i = 0; i < names.size(); ++i) {
    out += fmt::format(".BR {} (1){}\n", roff(names[i]), i + 1 < names.size() ? "," : "");
  }
  return out;
}

void add_page(const CLI::App& app, std::vector<ManPage>& pages) {
  const CommandHelp help = help_of(app);
  const std::string name = page_name(app);
  std::string text = fmt::format(".\\\" Made by 'cairn help --man'.\n.TH {} 1 \"\" Cairn \"{}\"\n",
                                 roff(name), "Commands of Cairn");
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(app.get_description()));
  text += fmt::format(".SH SYNOPSIS\n.B {}\n", roff(help.usage));
  text += rows_text("COMMANDS", help.commands);
  text += rows_text("ARGUMENTS", help.arguments);
  text += rows_text("OPTIONS", help.options);
  text += examples_text(help.footer);
  text += ".SH EXIT STATUS\n0: done. 1: failed. 2: the arguments were not a command.\n";
  text += see_also(app);
  pages.push_back({.name = name + ".1", .text = std::move(text)});
  for (const CLI::App* each : app.get_subcommands({})) add_page(*each, pages);
}

}  // namespace

std::vector<ManPage> man_pages(const CLI::App& root) {
  std::vector<ManPage> pages;
  add_page(root, pages);
  return pages;
}

}  // namespace cairn::apps
