// SPDX-License-Identifier: Apache-2.0
// A metadata store in a folder, by RocksDB: a store over a state in memory (meta/local_store.h)
// whose journal it is.
//
// The state is in memory, as meta::State; the folder holds every row of it, leases, revisions and
// what was compacted. A commit is answered after RocksDB has written and synced its log, so what
// was answered survives the death of the process and of the machine. Calls of RocksDB block and run
// on a thread of their own, never on the core.
//
// After a start leases have their full time to live again. One process has a folder at a time.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "env/env.h"
#include "meta/state.h"
#include "meta/store.h"
#include "task/task.h"

namespace cairn::rocks {

struct RocksOptions {
  std::string folder;  // made if it is not there; its parent must be
  meta::StateLimits limits;
};

// kExists: another has the folder open. kUnsupported: it holds something else, or metadata of
// another version, or this is no real world. kCorrupt: it is damaged. kNotFound, kDenied, kNoSpace,
// kIo. Nothing in a folder that is refused is changed.
task::Task<Result<std::unique_ptr<meta::Store>>> open_rocks_store(env::Env& env,
                                                                  RocksOptions options);

}  // namespace cairn::rocks
