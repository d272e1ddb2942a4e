// SPDX-License-Identifier: Apache-2.0
// A namespace's drive as a user names it.
#pragma once

#include <string_view>

#include "base/problem.h"
#include "nvme/controller/registry.h"
#include "server/open/open_stack.h"

namespace cairn::server {

// A source or a stack, put into `options`. As StackPlan::prepare.
Attempt<void> take_drive(std::string_view text, LookUp when, nvme::NamespaceOptions& options);

}  // namespace cairn::server
