// SPDX-License-Identifier: Apache-2.0
// Record: one request of a trace, whatever format it came in. Mistake: what is wrong with a trace.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace cairn::trace {

using Nanos = int64_t;

inline constexpr uint32_t kUnknown = UINT32_MAX;

struct Record {
  Nanos arrival = 0;  // as the file counts time; a Reader makes the first one zero
  uint64_t offset = 0;
  uint32_t bytes = 0;   // above zero
  uint32_t volume = 0;  // in the order in which the trace names them
  bool write = false;
  uint32_t initiator = kUnknown;  // where the trace says so
  uint32_t target = kUnknown;
};

// What no request of a trace exceeds.
inline constexpr uint32_t kRequestBytesMax = 1U << 29;
inline constexpr uint64_t kOffsetMax = uint64_t{1} << 62;
inline constexpr Nanos kArrivalMax = INT64_MAX / 2;
inline constexpr uint32_t kSectorBytes = 512;

// `line` counts from 1, 0 is the file as a whole; `field` may be empty.
struct Mistake {
  uint64_t line = 0;
  std::string field;
  std::string text;

  // "vdi.csv, line 7, field Size: '4k' is not a whole number"; `file` as the user calls it.
  std::string about(const std::string& file) const;
};

template <class T = void>
using Outcome = std::expected<T, Mistake>;

}  // namespace cairn::trace
