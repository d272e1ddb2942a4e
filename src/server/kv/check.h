// SPDX-License-Identifier: Apache-2.0
// Checking a drive of keys and values that nobody serves.
#pragma once

#include <string>

#include "base/problem.h"
#include "env/env.h"
#include "kv/store/check.h"
#include "task/task.h"

namespace cairn::server {

// Reads all that the store on `stack` has, and writes nothing of it. The Problem: the drive does
// not open, cannot be read, or holds no store that would open.
task::Task<Attempt<kv::store::CheckReport>> check_store(env::Env& env, std::string stack);

}  // namespace cairn::server
