// SPDX-License-Identifier: Apache-2.0
// A metadata store that a user named, opened.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/problem.h"
#include "env/env.h"
#include "meta/store.h"
#include "server/open/store_uri.h"
#include "task/task.h"

namespace cairn::server {

// Servers need not answer yet. The Problem says why a folder or a key file cannot be opened, and
// what to do. The store is closed before it is destroyed.
task::Task<Attempt<std::unique_ptr<meta::Store>>> open_store(env::Env& env, StoreUri uri);
// The same; `on_refused` is told who this client is when a server refuses it or its request.
task::Task<Attempt<std::unique_ptr<meta::Store>>> open_store(
    env::Env& env, StoreUri uri, std::function<void(std::string)> on_refused);

}  // namespace cairn::server
