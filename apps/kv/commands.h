// SPDX-License-Identifier: Apache-2.0
// The commands of `cairn kv`: each has a file of its own, or one with its kin.
#pragma once

#include <memory>

#include "apps/common/command.h"

namespace cairn::apps {

std::unique_ptr<Command> make_kv_bench(CLI::App& app);
std::unique_ptr<Command> make_kv_serve(CLI::App& app);
std::unique_ptr<Command> make_kv_check(CLI::App& app);
std::unique_ptr<Command> make_kv_get(CLI::App& app);
std::unique_ptr<Command> make_kv_put(CLI::App& app);
std::unique_ptr<Command> make_kv_del(CLI::App& app);
std::unique_ptr<Command> make_kv_scan(CLI::App& app);
std::unique_ptr<Command> make_kv_stats(CLI::App& app);
std::unique_ptr<Command> make_kv_ring_show(CLI::App& app);
std::unique_ptr<Command> make_kv_ring_add(CLI::App& app);
std::unique_ptr<Command> make_kv_ring_drain(CLI::App& app);
std::unique_ptr<Command> make_kv_ring_remove(CLI::App& app);

}  // namespace cairn::apps
