// SPDX-License-Identifier: Apache-2.0
// Traces and long tables come compressed.
#pragma once

#include <string>
#include <string_view>

#include "base/problem.h"

namespace cairn::plan {

// What a gzip file holds, at most `size_max` bytes; text that is not compressed comes back as it
// is.
Attempt<std::string> gunzip(std::string text, size_t size_max);

}  // namespace cairn::plan
