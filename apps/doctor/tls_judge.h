// SPDX-License-Identifier: Apache-2.0
// Which step towards a target through TLS fails, and what to do about it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/doctor/tls_facts.h"

namespace cairn::apps::doctor {

struct TlsStep {
  enum class Outcome : uint8_t { kPass, kFail, kSkipped };  // skipped: an earlier one failed
  std::string name;
  Outcome outcome = Outcome::kSkipped;
  std::string found;
  std::string next;  // what to do; empty when there is nothing to do
};

// In order: connect, tls, version, cipher, identity, key, greeting, session.
std::vector<TlsStep> judge_tls(const TlsFacts& facts);

std::string text_of(const std::vector<TlsStep>& steps);
nlohmann::ordered_json json_of(const std::vector<TlsStep>& steps);
bool have_passed(const std::vector<TlsStep>& steps);

}  // namespace cairn::apps::doctor
