// SPDX-License-Identifier: Apache-2.0
// Traces and long tables come compressed.
#pragma once

#include <string>
#include <string_view>

#include "apps/problem.h"

namespace cairn::apps {

// What a gzip file holds, at most `size_max` bytes; text that is not compressed comes back as it
// is.
Attempt<std::string> gunzip(std::string text, size_t size_max);

}  // namespace cairn::apps
