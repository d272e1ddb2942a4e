// SPDX-License-Identifier: Apache-2.0
// `cairn drive qemu-args`.
#pragma once

#include <memory>

#include "apps/common/command.h"

namespace cairn::apps {

std::unique_ptr<Command> make_drive_qemu_args(CLI::App& app);

}  // namespace cairn::apps
