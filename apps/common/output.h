// SPDX-License-Identifier: Apache-2.0
// Where commands print.
#pragma once

#include <string_view>

namespace cairn::apps {

// Writes to stdout. What cannot be written is noticed once, by finish_output().
void say(std::string_view text);

// Flushes stdout. False, after a sentence on stderr, when something did not arrive: a full disk.
bool finish_output();

}  // namespace cairn::apps
