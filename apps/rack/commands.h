// SPDX-License-Identifier: Apache-2.0
// The commands about a rack: its metadata, its billboard, and drives made of its spare space.
#pragma once

#include <memory>

#include "apps/common/command.h"

namespace cairn::apps {

std::unique_ptr<Command> make_rack_serve(CLI::App& app);
std::unique_ptr<Command> make_rack_offers(CLI::App& app);
std::unique_ptr<Command> make_rack_drives(CLI::App& app);
std::unique_ptr<Command> make_rack_stack(CLI::App& app);
std::unique_ptr<Command> make_drive_create(CLI::App& app);
std::unique_ptr<Command> make_drive_release(CLI::App& app);

}  // namespace cairn::apps
