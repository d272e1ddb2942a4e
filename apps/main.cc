// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "apps/command_line.h"

int main(int count, char** words) {
  std::vector<std::string> arguments;
  if (count > 1) arguments.assign(words + 1, words + count);
  return cairn::apps::run_command_line(arguments);
}
