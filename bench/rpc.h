// SPDX-License-Identifier: Apache-2.0
// `cairn bench rpc`: what a call with nothing in it costs beside the bare exchange of its bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/error.h"
#include "bench/report.h"
#include "bench/world_load.h"

namespace cairn::bench {

struct RpcOptions {
  int rounds = 9;
  Load load;            // the size of a message is that of a frame
  uint32_t depth = 64;  // calls at once where there are many
  WorldFactory world;
  // Told what is about to run; may be empty.
  std::function<void(std::string_view)> progress;
};

// One call after the other against a ping-pong of 32 bytes, a frame's head; `depth` at once against
// a ping-pong of as many heads in one piece. The ratios are rpc_call_vs_bare and rpc_calls_vs_bare
// (per second; the median of the ratios within each round), and rpc_call_p50_vs_bare.
Result<Report> bench_rpc(const RpcOptions& options);

}  // namespace cairn::bench
