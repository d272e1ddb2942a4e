// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/flash_profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace cairn::plan {

namespace {

using flash::Nanos;
using flash::Parameters;

// The largest unit that leaves no fraction.
std::string time_text(Nanos ns) {
  if (ns != 0 && ns % 1'000'000 == 0) return fmt::format("\"{} ms\"", ns / 1'000'000);
  if (ns != 0 && ns % 1000 == 0) return fmt::format("\"{} us\"", ns / 1000);
  return fmt::format("\"{} ns\"", ns);
}

std::string size_text(uint64_t bytes) {
  if (bytes != 0 && bytes % (1 << 20) == 0) return fmt::format("\"{} MiB\"", bytes >> 20);
  if (bytes != 0 && bytes % 1024 == 0) return fmt::format("\"{} KiB\"", bytes / 1024);
  return fmt::format("\"{} B\"", bytes);
}

// A double that TOML reads as such, and as the same.
std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string times_text(const std::array<Nanos, 4>& times, flash::Technology technology) {
  const auto types = static_cast<size_t>(technology);
  if (std::ranges::adjacent_find(times, std::ranges::not_equal_to{}) == times.end()) {
    return time_text(times[0]);
  }
  // Types that the cells do not have repeat the last one when they are read again.
  size_t count = 4;
  while (count > types && times[count - 1] == times[count - 2]) --count;
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", time_text(times[i]));
  }
  return fmt::format("[{}]", text);
}

// A TOML basic string.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f ? '?' : letter;
  }
  return out + "\"";
}

constexpr std::string_view kCaches[] = {"off", "write", "read", "read-write"};
constexpr std::string_view kPolicies[] = {"greedy",   "rga",       "random",
                                          "random-p", "random-pp", "fifo"};
constexpr std::string_view kTechnologies[] = {"", "slc", "mlc", "tlc", "qlc"};

class Writer {
 public:
  void text(std::string_view key, std::string_view value) { line(key, quoted(value)); }
  void count(std::string_view key, uint64_t value) { line(key, fmt::format("{}", value)); }
  void real(std::string_view key, double value) { line(key, real_text(value)); }
  void flag(std::string_view key, bool value) { line(key, value ? "true" : "false"); }
  void time(std::string_view key, Nanos value) { line(key, time_text(value)); }
  void size(std::string_view key, uint64_t value) { line(key, size_text(value)); }
  void line(std::string_view key, std::string_view value) {
    fmt::format_to(std::back_inserter(out_), "{} = {}\n", key, value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

void write_front(Writer& to, const Parameters& p) {
  to.real("lane_gb_per_s", p.lane_gb_per_s);
  to.count("lanes", p.lanes);
  to.count("queue_depth", p.queue_depth);
  to.count("queue_fetch", p.queue_fetch);
  to.time("command", p.command_ns);
  to.text("cache", kCaches[static_cast<size_t>(p.streams[0].cache)]);
  to.size("cache_bytes", p.cache_bytes);
  to.size("dram_row_bytes", p.dram_row_bytes);
  to.count("dram_mt_per_s", p.dram_mt_per_s);
  to.size("dram_burst_bytes", p.dram_burst_bytes);
  to.time("dram_trcd", p.dram_trcd_ns);
  to.time("dram_tcl", p.dram_tcl_ns);
  to.time("dram_trp", p.dram_trp_ns);
  to.count("write_back_pages", p.write_back_pages);
}

void write_mapping_and_collection(Writer& to, const Parameters& p) {
  to.flag("ideal_mapping", p.ideal_mapping);
  to.size("mapping_cache_bytes", p.mapping_cache_bytes);
  to.text("spread", p.dynamic_spread ? "dynamic" : flash::text(p.spread));
  to.real("over_provisioning", p.over_provisioning);
  to.text("gc_policy", kPolicies[static_cast<size_t>(p.gc_policy)]);
  to.real("gc_threshold", p.gc_threshold);
  to.real("gc_hard_threshold", p.gc_hard_threshold);
  to.flag("gc_preemptible", p.gc_preemptible);
  to.flag("dynamic_wear_levelling", p.dynamic_wear_levelling);
  to.flag("static_wear_levelling", p.static_wear_levelling);
  to.count("static_wear_threshold", p.static_wear_threshold);
  to.count("pe_cycles", p.pe_cycles);
  to.flag("suspend_program", p.suspend_program);
  to.flag("suspend_erase", p.suspend_erase);
  to.time("suspend_program_ns", p.suspend_program_ns);
  to.time("suspend_erase_ns", p.suspend_erase_ns);
  to.time("worth_suspending_program", p.worth_suspending_program_ns);
  to.time("worth_suspending_erase", p.worth_suspending_erase_ns);
}

void write_flash(Writer& to, const Parameters& p) {
  to.count("channels", p.channels);
  to.size("channel_width_bytes", p.channel_width_bytes);
  to.count("channel_mt_per_s", p.channel_mt_per_s);
  to.count("chips_per_channel", p.chips_per_channel);
  to.count("dies_per_chip", p.dies_per_chip);
  to.count("planes_per_die", p.planes_per_die);
  to.count("blocks_per_plane", p.blocks_per_plane);
  to.count("pages_per_block", p.pages_per_block);
  to.size("page_bytes", p.page_bytes);
  to.text("technology", kTechnologies[static_cast<size_t>(p.technology)]);
  to.line("read", times_text(p.read_ns, p.technology));
  to.line("program", times_text(p.program_ns, p.technology));
  to.time("erase", p.erase_ns);
  to.count("seed", p.seed);
}

}  // namespace

std::string flash_profile_text(const Parameters& p, std::string_view name) {
  Writer to;
  to.text("name", name);
  to.text("compat", p.mqsim ? "mqsim" : "none");
  write_front(to, p);
  write_mapping_and_collection(to, p);
  write_flash(to, p);
  return to.take();
}

}  // namespace cairn::plan
