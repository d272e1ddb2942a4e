// SPDX-License-Identifier: Apache-2.0
// What an error of a key-value store means to the person who named its drive.
#pragma once

#include <string_view>

#include "base/error.h"
#include "base/problem.h"

namespace cairn::server {

// Why there is no use of the store on `stack`, and what to do.
Problem cannot_use_store(std::string_view stack, const Error& error);

}  // namespace cairn::server
