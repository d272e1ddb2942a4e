// SPDX-License-Identifier: Apache-2.0
// Reading whole small files: configuration given by a user, facts given by the kernel.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "apps/problem.h"

namespace cairn::apps {

// The whole of a regular file (or pipe) of at most `size_max` bytes. The Problem says in one
// sentence what is wrong with the path and what to do.
Attempt<std::string> read_file(const std::string& path, size_t size_max);

// The first line of a file of the kernel's, without its end; nothing when it cannot be read.
std::optional<std::string> first_line(const std::string& path);

}  // namespace cairn::apps
