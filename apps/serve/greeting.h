// SPDX-License-Identifier: Apache-2.0
// What `cairn serve` says when it serves: each drive at each door, with a line to paste.
#pragma once

#include "server/config/keys.h"
#include "server/serve/server.h"

namespace cairn::apps {

void greet(const server::Server& server, const server::ServerConfig& config);

}  // namespace cairn::apps
