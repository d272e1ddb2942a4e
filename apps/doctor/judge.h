// SPDX-License-Identifier: Apache-2.0
// From facts to advice: what is fine, what is not, and what to do next.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "world/machine/backend.h"
#include "world/machine/facts.h"

namespace cairn::apps::doctor {

enum class Status : uint8_t {
  kOk,
  kWarn,     // works, with less speed or reach
  kMissing,  // not here; `next` says what that rules out or how to get it
};
std::string_view name(Status status);

struct Check {
  std::string name;  // "open files"
  Status status = Status::kOk;
  std::string found;  // "1024 (hard limit 4096)"
  std::string next;   // empty when there is nothing to do
};

struct Diagnosis {
  std::vector<Check> checks;
  machine::Backend chosen;  // what --io auto means here
  bool can_run = false;     // some back end works
};

Diagnosis judge(const machine::Facts& facts);

// An aligned table for people.
std::string table_of(const Diagnosis& diagnosis);

// The same, with the facts, as data.
inline constexpr int kSchemaVersion = 1;
nlohmann::ordered_json json_of(const Diagnosis& diagnosis, const machine::Facts& facts);

}  // namespace cairn::apps::doctor
