// SPDX-License-Identifier: Apache-2.0
// A box with memory drives in a process of its own, as the fabric's benchmarks meet it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "bench/process.h"
#include "bench/usage.h"
#include "bench/world_load.h"
#include "env/address.h"
#include "fabric/host/uri.h"

namespace cairn::bench {

inline constexpr uint32_t kBoxTargetsMax = 64;

struct BoxProcessOptions {
  WorldFactory world;
  int cpu = 0;
  bool poll = false;
  std::optional<Duration> nap = Duration{0};  // env::WorldOptions
  fabric::DoorbellOptions doorbell;
  uint64_t memory = 256_MiB;  // of all its drives together
  uint32_t block_size = 4096;
  // A subsystem each, with a port, a name and a drive of its own: to a host, so many boxes.
  uint32_t targets = 1;  // kBoxTargetsMax at most
  bool time_calls = false;
  std::string only_host;  // the NQN of the only host that may connect; empty: any may
};

// Serves while it exists, except when paused: then it takes no CPU from anybody.
class BoxProcess {
 public:
  static Result<std::unique_ptr<BoxProcess>> start(const BoxProcessOptions& options);
  ~BoxProcess();

  // The namespace of one of its targets, for a host in this process.
  fabric::Uri uri(uint32_t target = 0) const;
  void pause() const { process_.pause(); }
  void resume() const { process_.resume(); }
  // Its processor time is exact; the rest is up to ten milliseconds old.
  Usage usage() const;

 private:
  struct Figures;
  BoxProcess(SharedMemory shared, Process process)
      : shared_(std::move(shared)), process_(std::move(process)) {}
  Figures& figures() const;

  SharedMemory shared_;
  Process process_;
};

}  // namespace cairn::bench
