// SPDX-License-Identifier: Apache-2.0
// What `cairn plan snis` found, as JSON, CSV, text and one HTML page.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "snis/iterations.h"

namespace cairn::plan {

// Everything borrowed outlives the calls.
struct SnisOutcome {
  std::string load;  // as the user calls it
  std::string drive;
  std::string network;
  uint32_t targets = 1;
  uint32_t initiators = 1;
  std::span<const trace::Record> requests;
  std::span<const snis::Step> steps;  // may be empty when coupled is there
  std::optional<int> stable_at;
  snis::Stable why = snis::Stable::kNo;
  bool unchanged = false;
  std::optional<snis::Step> coupled;
  std::optional<snis::Differences> apart;  // the last iteration from the coupled loop
};

nlohmann::ordered_json snis_json(const SnisOutcome& outcome);
// A line for each iteration, and one for the coupled loop whose iteration is "coupled".
std::string snis_csv(const SnisOutcome& outcome);
std::string snis_text(const SnisOutcome& outcome);
std::string snis_page(const SnisOutcome& outcome);

// Where every request was when.
std::string times_csv(std::span<const trace::Record> requests, const snis::Times& times);

}  // namespace cairn::plan
