// SPDX-License-Identifier: Apache-2.0
// CoreNamespaces: the namespaces of a subsystem as one core serves them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "drive/drive.h"
#include "env/env.h"
#include "nvme/format/ana_format.h"
#include "nvme/reservation/reservation_view.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::nvme {

// What SMART and metrics count, per core and namespace; summed when asked for.
struct IoCounters {
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t blocks_read = 0;
  uint64_t blocks_written = 0;
  uint64_t media_errors = 0;
  void add(const IoCounters& other) {
    reads += other.reads;
    writes += other.writes;
    blocks_read += other.blocks_read;
    blocks_written += other.blocks_written;
    media_errors += other.media_errors;
  }
};

// Hears of a drive, on the control core.
struct DriveHooks {
  std::function<void(const Error&)> failed;                     // a request
  std::function<task::Task<void>(drive::Incarnation)> changed;  // to another incarnation
};

// What Identify tells of a drive's incarnation.
struct ToldIncarnation {
  drive::Incarnation incarnation;
  // Controllers that are older than this era of their subsystem may have been told another one.
  uint64_t era = 0;
};

// One namespace on one core. Commands enter its gate; removal closes it and waits.
struct CoreNamespace {
  // The medium failed a request: the control core is told, one failure at a time.
  void report(const Error& error);
  // Whether a host whose controller is of this era knows which incarnation it has been answered by;
  // asked when the drive has answered. The control core is told of one that nobody knows of.
  bool is_known_to(uint64_t era);
  // Whether a host may know of it.
  bool is_for(std::string_view host_nqn) const { return owner.empty() || owner == host_nqn; }

  uint32_t nsid = 0;
  std::unique_ptr<drive::Drive> drive;
  AnaState ana_state = AnaState::kOptimized;
  ReservationView reservation;
  bool read_only = false;
  std::string owner;  // as NamespaceOptions'
  IoCounters counters;
  task::Gate gate;
  bool removed = false;
  env::Env* env = nullptr;  // of this core; null: nobody is told
  CoreId control{};
  const DriveHooks* hooks = nullptr;  // the control core's
  bool reporting = false;
  ToldIncarnation told;
  bool reporting_change = false;

 private:
  task::Task<void> tell_control(Error error);
  task::Task<void> tell_control(drive::Incarnation now);
};

// Changed by the control core through messages, read by this core's queues.
class CoreNamespaces {
 public:
  // Null when there is none, or it is being removed.
  CoreNamespace* find(uint32_t nsid) {
    const auto found = namespaces_.find(nsid);
    return found == namespaces_.end() || found->second->removed ? nullptr : found->second.get();
  }
  // kExists: the id is taken.
  Result<CoreNamespace*> add(uint32_t nsid, std::unique_ptr<drive::Drive> drive);
  // Waits until no command uses it, closes its drive and forgets it. Gives what it has counted.
  // kNotFound.
  task::Task<Result<IoCounters>> remove(uint32_t nsid);
  // All of them; for shutdown.
  task::Task<void> clear();

  template <class F>
  void for_each(F&& visit) {
    for (auto& [nsid, space] : namespaces_) {
      if (!space->removed) visit(*space);
    }
  }

 private:
  std::map<uint32_t, std::unique_ptr<CoreNamespace>> namespaces_;
};

}  // namespace cairn::nvme
