// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace cairn::server {

// Whether a text names a stack: a service over drives, a drive across the network, or a volume. All
// else is a source, or a mistake.
bool is_stack(std::string_view text);

// Whether a drive may be named so: letters, digits, '_', '.' and '-'.
bool is_drive_name(std::string_view text);

}  // namespace cairn::server
