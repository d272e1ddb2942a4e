// SPDX-License-Identifier: Apache-2.0
// Sizes as people write them in options: 64M. For what people read; what programs read and what is
// stored keeps bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::drive {

// With the largest unit that divides it, so that parse_size() gives the same number: "64M",
// "1536K", "1000".
std::string size_text(uint64_t bytes);

// The text of a drive or a stack with each size=BYTES of its media in that form.
std::string with_size_texts(std::string_view stack);

}  // namespace cairn::drive
