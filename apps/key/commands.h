// SPDX-License-Identifier: Apache-2.0
// The verbs of `cairn key`: one make_ function each, like those of apps/commands.h.
#pragma once

#include <memory>

#include "apps/common/command.h"

namespace cairn::apps {

std::unique_ptr<Command> make_key_inspect(CLI::App& app);
std::unique_ptr<Command> make_key_new_auth(CLI::App& app);
std::unique_ptr<Command> make_key_new_drive(CLI::App& app);
std::unique_ptr<Command> make_key_new_tls(CLI::App& app);

}  // namespace cairn::apps
