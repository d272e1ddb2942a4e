// SPDX-License-Identifier: Apache-2.0
// Which drives and which network are simulated together.
#pragma once

#include <string>

#include "base/problem.h"
#include "snis/system.h"

namespace cairn::plan {

struct SnisSystemOptions {
  std::string profile;  // of the drives; "snis-authors" unless --config says otherwise
  std::string config;   // MQSim parameters as JSON
  double precondition_percent = 0;
  std::string network = "clos256";
  std::string transport = "dcqcn";
  bool fluid = false;
  bool hpcc = false;
  int targets = 1;
  int initiators = 10;
};

struct SnisSystem {
  snis::System system;
  std::string drive;        // as the user calls it
  std::string description;  // all that decides what requests meet; two that differ, differ here
};

// Checked. The Problem says what to change.
Attempt<SnisSystem> load_system(const SnisSystemOptions& options);

// The drive alone.
Attempt<flash::Parameters> load_drive(const SnisSystemOptions& options);
// How hosts send, as --transport, --fluid and --compat say.
Attempt<net::Parameters> load_transport(const SnisSystemOptions& options);

}  // namespace cairn::plan
