// SPDX-License-Identifier: Apache-2.0
// Who holds what a process needs alone: a lock, a local socket.
#pragma once

#include <optional>
#include <string>

#include "base/units.h"

namespace cairn::posix {

// Takes the lock of an open file (flock) and waits for it up to `timeout`, with the whole thread:
// for programs whose world does not run yet. False: another process has it.
bool lock_alone(int fd, Duration timeout);

// The process that listens at a local socket; none: nobody does, or it is not known here.
std::optional<int> listening_process(const std::string& path);

}  // namespace cairn::posix
