// SPDX-License-Identifier: Apache-2.0
// A namespace's drive as a user names it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/problem.h"
#include "nvme/controller/registry.h"
#include "server/open/open_stack.h"

namespace cairn::server {

// A source or a stack, put into `options`. As StackPlan::prepare.
Attempt<void> take_drive(std::string_view text, LookUp when, nvme::NamespaceOptions& options);

// What such a drive is called after it got another size: a stack's files have theirs by now.
void set_kept_size(nvme::NamespaceOptions& options, uint64_t bytes);

}  // namespace cairn::server
