// SPDX-License-Identifier: Apache-2.0
#include "apps/common/confirm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "apps/common/command.h"

namespace cairn::apps {

namespace {

// The first line that is typed, without its end; of a line that is too long, its beginning.
std::string read_answer() {
  std::array<char, 64> line{};
  if (std::fgets(line.data(), line.size(), stdin) == nullptr) return "";
  std::string answer = line.data();
  while (!answer.empty() && (answer.back() == '\n' || answer.back() == '\r')) answer.pop_back();
  return answer;
}

}  // namespace

Confirmation::Confirmation(CLI::App& app) {
  add_switch(app, "--yes", yes_, "do not ask whether what is lost may be lost");
}

Attempt<void> Confirmation::ask(std::string_view loss) const {
  if (yes_) return {};
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) {
    return refuse(fmt::format("{}: add --yes if that is meant", loss));
  }
  fmt::print(stderr, "{}. Go on? [y/N] ", loss);
  std::fflush(stderr);
  const std::string answer = read_answer();
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return refuse("nothing was changed");
}

}  // namespace cairn::apps
