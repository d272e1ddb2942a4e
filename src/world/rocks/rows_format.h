// SPDX-License-Identifier: Apache-2.0
// How a metadata state lies in a RocksDB: the only home of that layout, version 1.
//
//   key                            value
//   "f"                            "cairn metadata", u32 version
//   "l" u64 lease                  u64 time to live, ns
//   "m"                            u64 revision, u64 compacted, u64 last lease
//   "r" u64 revision u32 index     u8 removed, u64 created, u64 lease, u32 key length, key, value
//
// Numbers in keys are big-endian, so that rows lie in the order of commits; those in values are
// little-endian. Every value but that of "f" ends with the CRC32C of its key and of what is before.
// The values of one "m" and of all "l" and "r" belong together: a commit changes them in one write.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "meta/state.h"
#include "meta/types.h"

namespace cairn::rocks {

struct Totals {
  meta::Revision revision;
  meta::Revision compacted;
  meta::LeaseId last_lease;
  friend bool operator==(const Totals&, const Totals&) = default;
};

inline constexpr std::string_view kFormatKey = "f";
inline constexpr std::string_view kTotalsKey = "m";
inline constexpr char kLeaseMark = 'l';
inline constexpr char kRowMark = 'r';

std::string format_value();
// kUnsupported: of something else, or of a newer version.
Result<void> check_format(std::string_view value);

std::string lease_key(meta::LeaseId lease);
std::string row_key(meta::RowId row);

// A value for the key it will lie at.
std::string lease_value(const meta::Lease& lease);
std::string row_value(const meta::Row& row);
std::string totals_value(const Totals& totals);

// kCorrupt: the key or the value cannot have been written.
Result<meta::Lease> read_lease(std::string_view key, std::string_view value);
Result<meta::Row> read_row(std::string_view key, std::string_view value);
Result<Totals> read_totals(std::string_view value);

}  // namespace cairn::rocks
