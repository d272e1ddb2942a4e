// SPDX-License-Identifier: Apache-2.0
// `cairn events`: what changed in processes that run.
#pragma once

#include <memory>

#include "apps/common/command.h"

namespace cairn::apps {

std::unique_ptr<Command> make_events(CLI::App& app);

}  // namespace cairn::apps
