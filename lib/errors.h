// SPDX-License-Identifier: Apache-2.0
// Errors as C programs know them.
#pragma once

#include "base/error.h"

namespace cairn::capi {

// Positive.
int errno_of(const Error& error);

}  // namespace cairn::capi
