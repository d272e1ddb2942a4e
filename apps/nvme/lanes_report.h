// SPDX-License-Identifier: Apache-2.0
// What `cairn nvme lanes` was asked for and what it prints.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fabric/host/lane.h"
#include "loadgen/drive_load.h"

namespace cairn::apps {

struct LanesReport {
  std::string uri;
  std::string pattern;
  loadgen::DriveLoad load;  // without a duration there was none
  loadgen::LoadResult result;
  std::vector<fabric::HostLane> lanes;
};

nlohmann::ordered_json json_of(const LanesReport& report);
std::string text_of(const LanesReport& report);

}  // namespace cairn::apps
