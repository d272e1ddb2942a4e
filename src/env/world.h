// SPDX-License-Identifier: Apache-2.0
// World: what the real back ends have in common to whoever starts a process.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "env/env.h"

namespace cairn::env {

struct WorldOptions {
  // One reactor per entry, pinned to that CPU; -1 leaves it unpinned.
  std::vector<int> cpus = {-1};
  // Never sleep: the lowest latency, a whole core each.
  bool poll = false;
  // The same, on some of the CPUs only.
  std::vector<int> poll_cpus;
  // How long the others look for more work before they sleep; shorter while that finds none.
  Duration spin{0};
  // How long a core that is woken often for little work sleeps instead of waiting for each event:
  // less processor time, more latency, and timers as late. Zero: never. Below a second. None: each
  // core finds out whether letting work gather for some 20 us pays, and does so while it does.
  std::optional<Duration> nap;
  // Turn SIGINT and SIGTERM into a stop request.
  bool handle_signals = false;
  // Read the clock around each call that sends or receives, for KernelCalls.
  bool time_calls = false;
  // Keep the last events of each core.
  bool trace = false;
  BufferPoolOptions buffers;
};

// A process in the making. run() starts the cores, runs the program on the first, and returns when
// the program has ended; then all cores are idle and gone. One run per World.
class World {
 public:
  virtual ~World() = default;
  // kUnsupported: the kernel does not offer what this back end needs; kInvalid: no such CPU.
  virtual Result<void> run(const Program& program) = 0;
  // Requests every core's stop token. From any thread, and from a signal handler.
  virtual void request_stop() = 0;
};

}  // namespace cairn::env
