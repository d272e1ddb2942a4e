// SPDX-License-Identifier: Apache-2.0
// Cairn's own traces: every request with its latency and result, a line each.
//
//   cairn-trace,arrival_ns,kind,offset_bytes,bytes,latency_ns,result
//   ,1500,write,8192,4096,12000,ok
//
// Lines stand in order of completion. As requests, reads and writes count; compare-and-writes are
// writes, compares reads. What a crash left unwritten is zeroes, and a blank line fills a block up.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "trace/record.h"

namespace cairn::trace {

inline constexpr std::string_view kCairnHeading =
    "cairn-trace,arrival_ns,kind,offset_bytes,bytes,latency_ns,result\n";

struct CairnLine {
  Nanos arrival = 0;
  std::string_view kind;  // read, write, compare, compare-and-write, flush, discard, write-zeroes
  uint64_t offset = 0;
  uint64_t bytes = 0;
  Nanos latency = 0;
  std::string_view result;  // ok, or the name of an error
};
// Writes the line to the start of `into`: its length, or 0 when there is no room.
size_t write_line(const CairnLine& line, MutableBytes into);

}  // namespace cairn::trace
