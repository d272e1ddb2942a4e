// SPDX-License-Identifier: Apache-2.0
// Errors in sentences for people.
#pragma once

#include <string>

#include "base/error.h"

namespace cairn {

// What went wrong and why, without the code: "the namespace id is in use", "open drive file (No
// space left on device)".
std::string error_text(const Error& error);

}  // namespace cairn
