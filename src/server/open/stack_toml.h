// SPDX-License-Identifier: Apache-2.0
// A stack of services as TOML: the same as its line of text, with room for comments.
//
//   service = "stripe"
//   chunk = "64K"
//   below = ["file:/var/d0", "limit(file:/var/d1, iops=500)"]
//
//   service = "limit"
//   iops = 5000
//   [[below]]
//   service = "concat"
//   below = ["file:/a", "file:/b"]
#pragma once

#include <string>
#include <string_view>

#include "base/problem.h"
#include "stack/stack_text.h"

namespace cairn::server {

// A table is a service: its name, the drives below it, each a table or a text, and its options as
// text, whole numbers, or true and false for yes and no. The Problem has FILE:LINE:COLUMN, or the
// line of text the file stands for with a caret. Places in the stack are those of its text().
Attempt<drive::Stack> parse_stack_toml(std::string_view toml, const std::string& file);

// The same from a file.
Attempt<drive::Stack> read_stack_toml(const std::string& file);

// Reads back as the same stack; a leaf alone is `below` of nothing and has no such form.
std::string stack_toml(const drive::Stack& stack);

}  // namespace cairn::server
