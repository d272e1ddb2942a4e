// SPDX-License-Identifier: Apache-2.0
// What people are told when a rack's metadata store fails.
#pragma once

#include <string>

#include "base/error.h"

namespace cairn::rack {

// Why the store did not do what it was asked, and what to do. A refusal says so by itself.
std::string store_text(const Error& error);

}  // namespace cairn::rack
