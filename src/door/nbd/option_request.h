// SPDX-License-Identifier: Apache-2.0
// What clients say in options: pure functions from any bytes to their meaning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::door::nbd {

// The payload of an option that is looked at; a longer one is skipped and answered with TOO_BIG.
inline constexpr size_t kOptionMax = 16UL * 1024;
// Queries of one option, each up to kStringMax bytes.
inline constexpr size_t kQueriesMax = 64;

inline constexpr std::string_view kBaseAllocation = "base:allocation";

// Of INFO and GO. What else a client wants to know it is told anyway.
struct InfoRequest {
  std::string name;
  bool wants_name = false;
  bool wants_description = false;
};
// kInvalid: it breaks off, has bytes left over, or a name that is too long.
Result<InfoRequest> parse_info_request(Bytes payload);

// Of LIST_META_CONTEXT and SET_META_CONTEXT.
struct ContextRequest {
  std::string name;
  std::vector<std::string> queries;
};
// kInvalid as above; kLimit: more than kQueriesMax.
Result<ContextRequest> parse_context_request(Bytes payload);

// Whether a query asks for base:allocation: by its name, or, when listing, by its namespace.
bool asks_for_allocation(std::string_view query, bool listing);

}  // namespace cairn::door::nbd
