// SPDX-License-Identifier: Apache-2.0
// `cairn support-bundle`.
#pragma once

#include <memory>

#include "apps/common/command.h"

namespace cairn::apps {

std::unique_ptr<Command> make_support_bundle(CLI::App& app);

}  // namespace cairn::apps
