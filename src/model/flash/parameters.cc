// SPDX-License-Identifier: Apache-2.0
#include "model/flash/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace cairn::flash {

namespace {

constexpr std::string_view kLetters = "CWDP";

struct Range {
  const char* member;
  uint64_t value;
  uint64_t min;
  uint64_t max;
};

std::optional<ParameterProblem> check_ranges(const Parameters& p) {
  const Range ranges[] = {
      {"lanes", p.lanes, 1, 32},
      {"queue_depth", p.queue_depth, 2, 65536},
      {"queue_fetch", p.queue_fetch, 1, 65536},
      {"dram_row_bytes", p.dram_row_bytes, 512, 1 << 20},
      {"dram_mt_per_s", p.dram_mt_per_s, 1, 100'000},
      {"dram_burst_bytes", p.dram_burst_bytes, 1, 128},
      {"write_back_pages", p.write_back_pages, 1, 100'000},
      {"pe_cycles", p.pe_cycles, 1, 10'000'000},
      {"channels", p.channels, 1, 64},
      {"channel_width_bytes", p.channel_width_bytes, 1, 8},
      {"channel_mt_per_s", p.channel_mt_per_s, 1, 10'000},
      {"chips_per_channel", p.chips_per_channel, 1, 64},
      {"dies_per_chip", p.dies_per_chip, 1, 16},
      {"planes_per_die", p.planes_per_die, 1, 8},
      {"blocks_per_plane", p.blocks_per_plane, 16, 1 << 20},
      {"pages_per_block", p.pages_per_block, 2, 8192},
      {"page_bytes", p.page_bytes, 512, 32768},
      {"streams", p.streams.size(), 1, 64},
  };
  for (const Range& range : ranges) {
    if (range.value >= range.min && range.value <= range.max) continue;
    return ParameterProblem{range.member, fmt::format("must be from {} to {}, not {}", range.min,
                                                      range.max, range.value)};
  }
  return std::nullopt;
}

std::optional<ParameterProblem> check_times(const Parameters& p) {
  const std::pair<const char*, Nanos> times[] = {
      {"command_ns", p.command_ns},
      {"dram_trcd_ns", p.dram_trcd_ns},
      {"dram_tcl_ns", p.dram_tcl_ns},
      {"dram_trp_ns", p.dram_trp_ns},
      {"suspend_program_ns", p.suspend_program_ns},
      {"suspend_erase_ns", p.suspend_erase_ns},
      {"worth_suspending_program_ns", p.worth_suspending_program_ns},
      {"worth_suspending_erase_ns", p.worth_suspending_erase_ns},
      {"erase_ns", p.erase_ns},
      {"read_ns", *std::ranges::min_element(p.read_ns)},
      {"program_ns", *std::ranges::min_element(p.program_ns)},
      {"read_ns", *std::ranges::max_element(p.read_ns)},
      {"program_ns", *std::ranges::max_element(p.program_ns)},
  };
  constexpr Nanos kLongest = 10'000'000'000;
  for (const auto& [member, value] : times) {
    if (value >= 0 && value <= kLongest) continue;
    return ParameterProblem{member, "must be from 0 to 10 s"};
  }
  return std::nullopt;
}

std::optional<ParameterProblem> check_streams(const Parameters& p) {
  for (const StreamParameters& stream : p.streams) {
    for (const uint32_t channel : stream.channels) {
      if (channel >= p.channels) {
        return ParameterProblem{
            "streams", fmt::format("channel {} does not exist; the drive has channels 0 to {}",
                                   channel, p.channels - 1)};
      }
      if (std::ranges::count(stream.channels, channel) > 1) {
        return ParameterProblem{"streams", fmt::format("channel {} is named twice", channel)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<ParameterProblem> check(const Parameters& p) {
  if (auto problem = check_ranges(p)) return problem;
  if (auto problem = check_times(p)) return problem;
  if (auto problem = check_streams(p)) return problem;
  if (!(p.lane_gb_per_s >= 0.01 && p.lane_gb_per_s <= 64)) {
    return ParameterProblem{"lane_gb_per_s", "must be from 0.01 to 64"};
  }
  if (p.mqsim && p.command_ns != 0) {
    return ParameterProblem{"command_ns", "must be 0 with compat = \"mqsim\""};
  }
  if (p.page_bytes % kSectorBytes != 0) {
    return ParameterProblem{"page_bytes", "must be a multiple of 512"};
  }
  if (uint64_t{p.dies_per_chip} * p.planes_per_die > 64) {
    return ParameterProblem{
        "dies_per_chip", "a chip can have at most 64 planes", {"planes_per_die"}};
  }
  // One value of the 32-bit page number means "no page".
  if (p.physical_pages() >= UINT32_MAX) {
    return ParameterProblem{
        "blocks_per_plane",
        "the drive has more than 2^32 flash pages",
        {"pages_per_block", "channels", "chips_per_channel", "dies_per_chip", "planes_per_die"}};
  }
  if (!(p.gc_threshold >= 0 && p.gc_threshold < 0.5)) {
    return ParameterProblem{"gc_threshold", "must be from 0 to below 0.5"};
  }
  if (!(p.gc_hard_threshold >= 0 && p.gc_hard_threshold <= 0.5)) {
    return ParameterProblem{"gc_hard_threshold", "must be from 0 to 0.5"};
  }
  if (!p.mqsim && p.gc_hard_threshold > p.gc_threshold) {
    return ParameterProblem{"gc_hard_threshold",
                            fmt::format("must be at most gc_threshold, which is {}: collection "
                                        "cannot become urgent before it starts",
                                        p.gc_threshold),
                            {"gc_threshold"}};
  }
  if (!(p.over_provisioning >= 0 && p.over_provisioning < 0.95)) {
    return ParameterProblem{"over_provisioning", "must be from 0 to below 0.95"};
  }
  if (p.mqsim && !p.cache_protected) {
    return ParameterProblem{"cache_protected",
                            "must be true with compat = \"mqsim\": the reference has no power cut",
                            {"compat"}};
  }
  if (p.mqsim && p.copyback) {
    return ParameterProblem{
        "copyback",
        "must be false with compat = \"mqsim\": how the reference does it is not known",
        {"compat"}};
  }
  if (!p.mqsim) {
    // Three write frontiers per stream and the collector's reserve of two more must fit into the
    // spare blocks, or a full drive could never make room again.
    const double spare = p.over_provisioning * p.blocks_per_plane;
    const double needed = 5.0 * static_cast<double>(p.streams.size()) + 3;
    if (spare < needed) {
      return ParameterProblem{
          "over_provisioning",
          fmt::format("leaves {:.1f} spare blocks per plane; at least {:.0f} are needed, so raise "
                      "it to {:.3f} or use more blocks_per_plane",
                      spare, needed, needed / p.blocks_per_plane),
          {"blocks_per_plane"}};
    }
  }
  const uint64_t cache_pages = p.cache_bytes / p.page_bytes;
  if (cache_pages < 1 || cache_pages > (1U << 28)) {
    return ParameterProblem{
        "cache_bytes", "must hold at least one page and at most 2^28", {"page_bytes"}};
  }
  if (p.mapping_cache_bytes < 4096 || p.mapping_cache_bytes > (1ULL << 36)) {
    return ParameterProblem{"mapping_cache_bytes", "must be from 4 KiB to 64 GiB"};
  }
  return std::nullopt;
}

std::optional<Spread> parse_spread(std::string_view text) {
  if (text.size() != 4) return std::nullopt;
  Spread spread{};
  for (size_t i = 0; i < 4; ++i) {
    const size_t level = kLetters.find(text[i]);
    if (level == std::string_view::npos || text.find(text[i]) != i) return std::nullopt;
    spread[i] = static_cast<Level>(level);
  }
  return spread;
}

std::string text(const Spread& spread) {
  std::string letters;
  for (const Level level : spread) letters += kLetters[static_cast<size_t>(level)];
  return letters;
}

}  // namespace cairn::flash
