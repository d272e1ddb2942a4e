// SPDX-License-Identifier: Apache-2.0
// Who may come to a process from other machines, as its command line says it.
#pragma once

#include <memory>
#include <string>

#include "apps/common/command.h"
#include "rpc/client_keys.h"

namespace cairn::apps {

// --tls-keys FILE, with lines of ROLE NAME KEY; `help` says who needs one, and what each role may
// do. Without it there are none.
void add_client_keys(CLI::App& app, std::string help, std::shared_ptr<const rpc::ClientKeys>& into);

}  // namespace cairn::apps
