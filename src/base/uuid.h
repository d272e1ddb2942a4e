// SPDX-License-Identifier: Apache-2.0
// UUIDs as text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn {

using Uuid = std::array<uint8_t, 16>;

// 32 hexadecimal digits of either case; dashes between them are not looked at.
std::optional<Uuid> parse_uuid(std::string_view text);
// "00112233-4455-6677-8899-aabbccddeeff".
std::string uuid_text(const Uuid& uuid);

}  // namespace cairn
