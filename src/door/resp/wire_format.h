// SPDX-License-Identifier: Apache-2.0
// RESP, the protocol of Redis, as bytes: what lines begin with, and how long things may be.
// Versions 2 and 3 (https://redis.io/docs/reference/protocol-spec).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/units.h"
#include "kv/keyspace.h"

namespace cairn::door::resp {

enum class Marker : char {
  kStatus = '+',
  kError = '-',
  kInteger = ':',
  kBulk = '$',
  kArray = '*',
  // Since version 3.
  kNull = '_',
  kReal = ',',
  kBoolean = '#',
  kBigNumber = '(',
  kVerbatim = '=',
  kMap = '%',
  kSet = '~',
  kPush = '>',
  kAttribute = '|',
};

inline constexpr std::string_view kLineEnd = "\r\n";

// A line: a count, a size, or a request that somebody types (without lengths).
inline constexpr size_t kLineBytesMax = 64_KiB;
inline constexpr uint64_t kBulkBytesMax = kv::kValueBytesMax;
inline constexpr uint64_t kArgsMax = 1U << 20;
// All arguments of one request.
inline constexpr uint64_t kRequestBytesMax = 64_MiB;
// The same before a client has shown its password.
inline constexpr uint64_t kStrangerArgsMax = 10;
inline constexpr uint64_t kStrangerBulkBytesMax = 16_KiB;

}  // namespace cairn::door::resp
