// SPDX-License-Identifier: Apache-2.0
// Whether a text names a drive that could be opened, found out without opening one.
#pragma once

#include <string_view>

#include "base/problem.h"
#include "stack/stack_text.h"

namespace cairn::server {

// [NAME=]DRIVE or [NAME=]STACK. No drive is opened, no host name looked up, no key read, nothing
// written: what can be told from the words alone is right. The Problem shows the place with a
// caret.
Attempt<drive::Stack> check_drive_args(std::string_view text);
// The same of [NAME=]FILE, which holds TOML.
Attempt<drive::Stack> check_stack_file(std::string_view text);

}  // namespace cairn::server
