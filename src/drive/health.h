// SPDX-License-Identifier: Apache-2.0
// StackHealth: how well a whole stack is, with the reasons of all its layers (LiveStack::health).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "drive/drive.h"

namespace cairn::drive {

// "ok", "degraded", "failing".
std::string_view name(Health health);

// A layer's Concern, with the names of the layers that it is about.
struct HealthReason {
  Health health = Health::kDegraded;  // kOk: worth knowing, and nothing is wrong
  std::string code;
  std::string path;  // of the layer that says so
  std::string layer;
  std::string below;  // the drive below that it is about, as text; empty: the layer itself
  std::string below_path;
  std::string what;
};

struct HealthJob {
  std::string name;
  std::string path;  // of the layer that does it
  std::string layer;
  uint64_t done = 0;  // of total, in bytes
  uint64_t total = 0;
};

// A service that survives the loss of drives is no worse than degraded by them, unless all fail or
// it says so itself; every other layer is as well as the worst below it.
struct StackHealth {
  Health health = Health::kOk;
  std::vector<HealthReason> reasons;
  std::vector<HealthJob> jobs;
};

}  // namespace cairn::drive
