// SPDX-License-Identifier: Apache-2.0
// A box with one memory drive in a process of its own, as the fabric's benchmark meets it.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/units.h"
#include "bench/process.h"
#include "bench/world_load.h"
#include "env/address.h"
#include "fabric/host/uri.h"

namespace cairn::bench {

struct BoxProcessOptions {
  WorldFactory world;
  int cpu = 0;
  bool poll = false;
  fabric::DoorbellOptions doorbell;
  uint64_t memory = 256u << 20;
};

// Serves while it exists, except when paused: then it takes no CPU from anybody.
class BoxProcess {
 public:
  static Result<std::unique_ptr<BoxProcess>> start(const BoxProcessOptions& options);
  ~BoxProcess();

  // Its namespace, for a host in this process.
  fabric::Uri uri() const;
  void pause() const { process_.pause(); }
  void resume() const { process_.resume(); }
  Duration cpu_time() const { return process_.cpu_time(); }
  // Calls into the kernel so far; up to ten milliseconds old.
  uint64_t system_calls() const;

 private:
  struct Figures;
  BoxProcess(SharedMemory shared, Process process)
      : shared_(std::move(shared)), process_(std::move(process)) {}
  Figures& figures() const;

  SharedMemory shared_;
  Process process_;
};

}  // namespace cairn::bench
