// SPDX-License-Identifier: Apache-2.0
#include "trace/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/check.h"

namespace cairn::trace {

namespace {

constexpr uint64_t kRequestsMax = 100'000'000;

constexpr std::array<PaperTrace, 5> kPaper = {{{"F_t_l", 28, 11, 57, 54, 3.93, 1.63, 2},
                                               {"F_t_m", 27, 12, 17, 17, 12.71, 5.65, 7},
                                               {"F_t_h", 28, 11, 12, 10, 18.67, 8.80, 3},
                                               {"F_s_m", 80, 34, 60, 53, 10.67, 5.06, 5},
                                               {"F_s_h", 110, 46, 60, 52, 14.67, 7.08, 3}}};

// Squared coefficients of variation of the VDI trace.
constexpr double kReadGapScv = 55.6;
constexpr double kWriteGapScv = 8.2;
constexpr double kReadSizeScv = 1.8;
constexpr double kWriteSizeScv = 4.7;

std::optional<std::string> check_stream(const char* name, const Stream& stream) {
  if (stream.requests > kRequestsMax) {
    return fmt::format("{}: at most {} requests are drawn", name, kRequestsMax);
  }
  if (const auto problem = check(stream.gap_ns)) return fmt::format("{} gaps: {}", name, *problem);
  if (const auto problem = check(stream.size_bytes)) {
    return fmt::format("{} sizes: {}", name, *problem);
  }
  return std::nullopt;
}

uint32_t whole_sectors(double bytes, uint64_t max) {
  const double sectors = std::max(1.0, std::round(bytes / kSectorBytes));
  return static_cast<uint32_t>(std::min(sectors * kSectorBytes, static_cast<double>(max)));
}

std::vector<Record> draw_stream(const Stream& stream, bool write, const Synthetic& synthetic,
                                Rng& seeds) {
  std::vector<Record> into;
  Draw gaps(stream.gap_ns, seeds.next());
  Draw sizes(stream.size_bytes, seeds.next());
  Rng addresses(seeds.next());
  const uint64_t max =
      std::min<uint64_t>(synthetic.space, kRequestBytesMax) / kSectorBytes * kSectorBytes;
  double at = 0;
  for (uint64_t i = 0; i < stream.requests; ++i) {
    at = std::min(at + gaps.next(), static_cast<double>(kArrivalMax));
    const uint32_t bytes = whole_sectors(sizes.next(), max);
    const uint64_t places = (synthetic.space - bytes) / synthetic.alignment + 1;
    into.push_back({.arrival = static_cast<Nanos>(at),
                    .offset = addresses.below(places) * synthetic.alignment,
                    .bytes = bytes,
                    .write = write});
  }
  return into;
}

}  // namespace

std::optional<std::string> check(const Synthetic& synthetic) {
  if (const auto problem = check_stream("read", synthetic.reads)) return problem;
  if (const auto problem = check_stream("write", synthetic.writes)) return problem;
  if (synthetic.reads.requests + synthetic.writes.requests == 0) return "there are no requests";
  if (synthetic.space < kSectorBytes) return "the address space must hold a sector";
  if (synthetic.alignment == 0) return "the alignment must be above 0";
  return std::nullopt;
}

std::vector<Record> draw(const Synthetic& synthetic) {
  CHECK(!check(synthetic), "the workload was checked");
  Rng seeds(synthetic.seed);
  const std::vector<Record> reads = draw_stream(synthetic.reads, false, synthetic, seeds);
  const std::vector<Record> writes = draw_stream(synthetic.writes, true, synthetic, seeds);
  std::vector<Record> records;
  records.reserve(reads.size() + writes.size());
  std::ranges::merge(reads, writes, std::back_inserter(records), {}, &Record::arrival,
                     &Record::arrival);
  return records;
}

std::span<const PaperTrace> paper_traces() { return kPaper; }

const PaperTrace* paper_trace(std::string_view name) {
  const auto found =
      std::ranges::find_if(kPaper, [&](const PaperTrace& trace) { return trace.name == name; });
  return found == kPaper.end() ? nullptr : found;
}

Synthetic synthetic_of(const PaperTrace& trace, uint64_t seed) {
  return {.reads = {.gap_ns = {.mean = trace.read_gap_us * 1e3, .scv = kReadGapScv},
                    .size_bytes = {.mean = trace.read_size_kb * 1e3, .scv = kReadSizeScv}},
          .writes = {.gap_ns = {.mean = trace.write_gap_us * 1e3, .scv = kWriteGapScv},
                     .size_bytes = {.mean = trace.write_size_kb * 1e3, .scv = kWriteSizeScv}},
          .seed = seed};
}

}  // namespace cairn::trace
