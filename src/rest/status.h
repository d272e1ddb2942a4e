// SPDX-License-Identifier: Apache-2.0
// What a server's refusal means to whoever uses the drive.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace cairn::rest {

// Of a status that is not the one hoped for.
Error error_of_status(uint16_t status);

inline bool is_success(uint16_t status) { return status >= 200 && status < 300; }
inline bool is_gone(uint16_t status) { return status == 404 || status == 410; }

}  // namespace cairn::rest
