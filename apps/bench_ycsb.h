// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "apps/command.h"

namespace cairn::apps {

// `cairn bench ycsb`: RocksDB with a YCSB-like load in a folder.
std::unique_ptr<Command> make_bench_ycsb(CLI::App& app);

}  // namespace cairn::apps
