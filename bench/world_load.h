// SPDX-License-Identifier: Apache-2.0
// The same loads as raw_sockets.h, written against env:: and run on any real world of two cores.
#pragma once

#include <functional>
#include <memory>

#include "base/error.h"
#include "bench/workload.h"
#include "env/world.h"

namespace cairn::bench {

// Makes a fresh world for each run; the server is its core 0 and the client its core 1.
using WorldFactory =
    std::function<Result<std::unique_ptr<env::World>>(const env::WorldOptions& options)>;

struct WorldLoad {
  Load load;
  bool poll = false;
};

// The server reads with Stream::read, into its own memory.
Result<Sample> world_stream(const WorldFactory& factory, const WorldLoad& options);
// The server takes what arrived with Stream::receive, in the back end's memory.
Result<Sample> world_stream_receive(const WorldFactory& factory, const WorldLoad& options);
Result<Sample> world_pingpong(const WorldFactory& factory, const WorldLoad& options);

}  // namespace cairn::bench
