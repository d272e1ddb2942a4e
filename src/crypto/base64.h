// SPDX-License-Identifier: Apache-2.0
// Base64 (RFC 4648, 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace cairn::crypto {

std::string to_base64(Bytes bytes);

// None: not base64 in its one form, with padding and without anything else. What it gives is the
// caller's to wipe if it is secret.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace cairn::crypto
