// SPDX-License-Identifier: Apache-2.0
// `cairn arbiter`, `cairn pool` and `cairn volume`: elastic volumes.
#pragma once

#include <memory>

#include "apps/common/command.h"

namespace cairn::apps {

std::unique_ptr<Command> make_arbiter(CLI::App& app);
std::unique_ptr<Command> make_arbiter_status(CLI::App& app);
std::unique_ptr<Command> make_pool_add(CLI::App& app);
std::unique_ptr<Command> make_pool_list(CLI::App& app);
std::unique_ptr<Command> make_pool_show(CLI::App& app);
std::unique_ptr<Command> make_pool_drain(CLI::App& app);
std::unique_ptr<Command> make_pool_remove(CLI::App& app);
std::unique_ptr<Command> make_volume_create(CLI::App& app);
std::unique_ptr<Command> make_volume_list(CLI::App& app);
std::unique_ptr<Command> make_volume_show(CLI::App& app);
std::unique_ptr<Command> make_volume_resize(CLI::App& app);
std::unique_ptr<Command> make_volume_update(CLI::App& app);
std::unique_ptr<Command> make_volume_destroy(CLI::App& app);
std::unique_ptr<Command> make_volume_snapshot(CLI::App& app);
std::unique_ptr<Command> make_volume_clone(CLI::App& app);

}  // namespace cairn::apps
