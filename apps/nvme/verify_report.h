// SPDX-License-Identifier: Apache-2.0
// What `cairn nvme verify` found, for people and scripts.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/problem.h"
#include "loadgen/drive_verify.h"

namespace cairn::apps {

struct VerifyReport {
  std::string uri;
  uint64_t seed = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t block_size = 0;
  bool check_only = false;
  bool interrupted = false;
  loadgen::VerifyResult result;
};

nlohmann::ordered_json json_of(const VerifyReport& report);
std::string text_of(const VerifyReport& report);
// Of a report that is not ok: which block, what was expected, what came.
Problem problem_of(const VerifyReport& report);

}  // namespace cairn::apps
