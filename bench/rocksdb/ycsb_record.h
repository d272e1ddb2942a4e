// SPDX-License-Identifier: Apache-2.0
// The records of a YCSB-like load: whoever reads one knows whether it is right.
//
// A key is `user` and sixteen hexadecimal digits, scattered as YCSB's are. A value is as long as
// YCSB's ten fields of 100 bytes: its version in eight bytes, least significant first, and bytes
// that follow from the record's number and that version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace cairn::bench {

inline constexpr size_t kYcsbValueBytes = 1000;

std::string ycsb_key(uint64_t number);
std::string ycsb_value(uint64_t number, uint64_t version);

// The version of a value that was read. kCorrupt: it never was one of this record.
Result<uint64_t> ycsb_version(uint64_t number, std::string_view value);

}  // namespace cairn::bench
