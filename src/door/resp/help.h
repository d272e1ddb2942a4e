// SPDX-License-Identifier: Apache-2.0
// What HELP answers, of every command that has others below it.
#pragma once

#include "door/resp/command.h"

namespace cairn::door::resp {

// The subcommands and their summaries, a line each.
void help(Call& call);

}  // namespace cairn::door::resp
