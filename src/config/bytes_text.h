// SPDX-License-Identifier: Apache-2.0
// Numbers of bytes as people write them on a command line.
#pragma once

#include <cstdint>
#include <string>

#include "base/problem.h"

namespace cairn::config {

// "4096", "64K", "1GiB". The Problem follows the name of what was given.
Attempt<uint64_t> parse_bytes(const std::string& text);

}  // namespace cairn::config
