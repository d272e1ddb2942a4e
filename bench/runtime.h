// SPDX-License-Identifier: Apache-2.0
// `cairn bench runtime`: the worlds against plain sockets, and what a task costs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bench/report.h"
#include "bench/world_load.h"

namespace cairn::bench {

struct RuntimeOptions {
  int rounds = 15;
  Load load;
  bool poll = false;
  std::vector<std::string> only;  // names from runtime_parts(); empty: all
  // The worlds that take part, by name ("uring", "epoll"), with how to make them.
  std::vector<std::pair<std::string, WorldFactory>> worlds;
  std::vector<std::pair<std::string, std::string>> skipped;  // those that cannot, and why
  // Told what is about to run; may be empty.
  std::function<void(std::string_view)> progress;
};

// What `only` may name: "stream", "pingpong", "task", "idle", "sim".
const std::vector<std::string>& runtime_parts();

// Runs everything `rounds` times, the contestants taking turns within a round so that a noisy
// moment hits all alike. Ratios are NAME_stream_vs_raw (NAME_stream_receive_vs_raw when the reader
// takes chunks) and NAME_pingpong_vs_raw: the median of the
// ratios within each round, against blocking sockets or the hand-written epoll loop, whichever was
// better in this run.
// A contestant that fails ends the run with its error.
Result<Report> bench_runtime(const RuntimeOptions& options);

}  // namespace cairn::bench
