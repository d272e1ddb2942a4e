// SPDX-License-Identifier: Apache-2.0
// Whole small files: configuration given by a user, facts given by the kernel, state we keep.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "apps/problem.h"

namespace cairn::apps {

// The whole of a regular file (or pipe) of at most `size_max` bytes. The Problem says in one
// sentence what is wrong with the path and what to do.
Attempt<std::string> read_file(const std::string& path, size_t size_max);

// Makes `text` the contents of the file, wholly or not at all whatever happens: written beside it
// as PATH.new, made durable, renamed. The Problem says why it could not be, and what to do.
Attempt<void> replace_file(const std::string& path, std::string_view text);

// The first line of a file of the kernel's, without its end; nothing when it cannot be read.
std::optional<std::string> first_line(const std::string& path);

}  // namespace cairn::apps
