// SPDX-License-Identifier: Apache-2.0
#include "apps/sim/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>

#include "apps/words.h"

namespace cairn::apps {

namespace {

using flash::Nanos;
using flash::Op;
using flash::TimedRequest;

constexpr uint64_t kSector = flash::kSectorBytes;
constexpr uint32_t kSectorsMax = 1U << 20;  // half a gibibyte in one request
constexpr uint64_t kLbaMax = uint64_t{1} << 54;
constexpr uint64_t kSecondsMax = 9'000'000'000;  // model time counts nanoseconds

using Fields = std::vector<std::string_view>;

Fields cut(std::string_view line, char separator) {
  Fields fields;
  while (!line.empty()) {
    const size_t end = std::min(line.find(separator), line.size());
    if (end > 0 || separator == ',') fields.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return fields;
}

template <class T>
bool number(std::string_view text, T& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc{} && end == text.data() + text.size();
}

bool set_bytes(TimedRequest& timed, uint64_t offset, uint64_t size) {
  timed.request.lba = offset / kSector;
  timed.request.sectors = static_cast<uint32_t>((size + kSector - 1) / kSector);
  return size > 0 && size / kSector < kSectorsMax && timed.request.lba <= kLbaMax;
}

bool set_op(TimedRequest& timed, bool read, bool write) {
  timed.request.op = read ? Op::kRead : Op::kWrite;
  return read != write;
}

bool mqsim_line(const Fields& f, TimedRequest& timed) {
  uint64_t device = 0;
  return f.size() == 5 && number(f[0], timed.arrival) && number(f[1], device) &&
         number(f[2], timed.request.lba) && number(f[3], timed.request.sectors) &&
         timed.arrival >= 0 && timed.arrival <= static_cast<Nanos>(kSecondsMax * 1'000'000'000) &&
         timed.request.lba <= kLbaMax && timed.request.sectors > 0 &&
         timed.request.sectors <= kSectorsMax && set_op(timed, f[4] == "1", f[4] == "0");
}

// Timestamp,Response,IOType,LUN,Offset,Size
bool systor_line(const Fields& f, TimedRequest& timed) {
  double seconds = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  if (f.size() != 6 || !number(f[0], seconds) || !number(f[4], offset) || !number(f[5], size) ||
      !(seconds >= 0 && seconds <= static_cast<double>(kSecondsMax))) {
    return false;
  }
  timed.arrival = static_cast<Nanos>(seconds * 1e9);
  return set_bytes(timed, offset, size) && set_op(timed, f[2] == "R", f[2] == "W");
}

// Timestamp,Offset,Size,IOType,VolumeID: seconds and sectors
bool tencent_line(const Fields& f, TimedRequest& timed) {
  uint64_t seconds = 0;
  if (f.size() != 5 || !number(f[0], seconds) || !number(f[1], timed.request.lba) ||
      !number(f[2], timed.request.sectors) || seconds > kSecondsMax ||
      timed.request.lba > kLbaMax) {
    return false;
  }
  timed.arrival = static_cast<Nanos>(seconds * 1'000'000'000);
  return timed.request.sectors > 0 && timed.request.sectors <= kSectorsMax &&
         set_op(timed, f[3] == "0", f[3] == "1");
}

// Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime: units of 100 ns
bool msr_line(const Fields& f, TimedRequest& timed) {
  uint64_t ticks = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  if (f.size() != 7 || !number(f[0], ticks) || !number(f[4], offset) || !number(f[5], size)) {
    return false;
  }
  // Ticks since 1601 times 100 would not fit; only differences matter.
  timed.arrival = static_cast<Nanos>(ticks % 50'000'000'000'000'000 * 100);
  return set_bytes(timed, offset, size) && set_op(timed, f[3] == "Read", f[3] == "Write");
}

// device_id,opcode,offset,length,timestamp: microseconds
bool alibaba_line(const Fields& f, TimedRequest& timed) {
  uint64_t us = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  if (f.size() != 5 || !number(f[4], us) || !number(f[2], offset) || !number(f[3], size) ||
      us / 1'000'000 >= kSecondsMax) {
    return false;
  }
  timed.arrival = static_cast<Nanos>(us * 1000);
  return set_bytes(timed, offset, size) && set_op(timed, f[1] == "R", f[1] == "W");
}

struct Format {
  const char* name;
  char separator;
  bool (*parse)(const Fields&, TimedRequest&);
};

constexpr std::array<Format, 5> kFormats = {{{"MQSim", ' ', mqsim_line},
                                             {"SYSTOR '17", ',', systor_line},
                                             {"MSR Cambridge", ',', msr_line},
                                             {"Alibaba", ',', alibaba_line},
                                             {"Tencent CBS", ',', tencent_line}}};

Attempt<std::vector<TimedRequest>> parse_as(std::string_view text, const Format& format) {
  std::vector<TimedRequest> requests;
  size_t line_number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    TimedRequest timed;
    if (!format.parse(cut(line, format.separator), timed)) {
      if (line_number == 1) continue;  // a heading
      return refuse(fmt::format("line {}: {} is not a request in {} format", line_number,
                                in_quotes(line), format.name));
    }
    timed.request.cookie = requests.size();
    requests.push_back(timed);
  }
  if (requests.empty()) return refuse("has no requests");
  return requests;
}

}  // namespace

Attempt<std::vector<TimedRequest>> parse_mqsim_trace(std::string_view text) {
  return parse_as(text, kFormats[0]);
}

Attempt<std::vector<TimedRequest>> parse_trace(std::string_view text) {
  // The second line decides, because the first may be a heading.
  size_t start = 0;
  for (int tries = 0; tries < 2; ++tries) {
    const std::string_view line = text.substr(start, text.find('\n', start) - start);
    for (const Format& format : kFormats) {
      TimedRequest probe;
      if (!format.parse(cut(line, format.separator), probe)) continue;
      Attempt<std::vector<TimedRequest>> requests = parse_as(text, format);
      if (!requests) return requests;
      std::ranges::sort(*requests, [](const TimedRequest& a, const TimedRequest& b) {
        return a.arrival != b.arrival ? a.arrival < b.arrival : a.request.cookie < b.request.cookie;
      });
      const Nanos first = requests->front().arrival;
      for (size_t i = 0; i < requests->size(); ++i) {
        (*requests)[i].arrival -= first;
        (*requests)[i].request.cookie = i;
      }
      return requests;
    }
    start = text.find('\n', start);
    if (start == std::string_view::npos) break;
    ++start;
  }
  return refuse(
      "is in no format that is known: MQSim, SYSTOR '17, MSR Cambridge, Alibaba, Tencent CBS");
}

}  // namespace cairn::apps
