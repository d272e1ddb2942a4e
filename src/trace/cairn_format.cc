// SPDX-License-Identifier: Apache-2.0
#include "trace/cairn_format.h"

#include <fmt/format.h>

#include <array>

#include "trace/format.h"
#include "trace/row.h"

namespace cairn::trace {

namespace {

class Cairn final : public Format {
 public:
  Outcome<std::optional<Record>> parse(std::string_view line) override {
    const bool is_filling = line.front() == '\0' || line.find_first_not_of(' ') == line.npos;
    if (line.starts_with("cairn-trace,") || is_filling) return std::nullopt;
    static constexpr std::array kNames = {"cairn-trace", "arrival_ns", "kind",  "offset_bytes",
                                          "bytes",       "latency_ns", "result"};
    Row row(line, ',', kNames);
    row.expect_all();
    Record record{.arrival = row.time(1, 1)};
    const std::string_view kind = row[2];
    const bool reads = kind == "read" || kind == "compare";
    record.write = kind == "write" || kind == "compare-and-write";
    const bool is_other = kind == "flush" || kind == "discard" || kind == "write-zeroes";
    if (!reads && !record.write && !is_other) {
      row.refuse(2, fmt::format("{} is no kind of request", shown(kind)));
    }
    row.time(5, 1);
    if (row.mistake()) return std::unexpected(*row.mistake());
    if (is_other) return std::nullopt;
    row.offset(3, 1, record);
    row.bytes(4, 1, record);
    if (row.mistake()) return std::unexpected(*row.mistake());
    return record;
  }
};

}  // namespace

std::unique_ptr<Format> make_cairn() { return std::make_unique<Cairn>(); }

size_t write_line(const CairnLine& line, MutableBytes into) {
  char* to = reinterpret_cast<char*>(into.data());
  const auto written =
      fmt::format_to_n(to, into.size(), ",{},{},{},{},{},{}\n", line.arrival, line.kind,
                       line.offset, line.bytes, line.latency, line.result);
  return written.size > into.size() ? 0 : written.size;
}

}  // namespace cairn::trace
