// SPDX-License-Identifier: Apache-2.0
// What a modelled drive is made of. A profile file or a reference configuration fills this in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cairn::flash {

// Model time. Zero is when the drive was switched on.
using Nanos = int64_t;

inline constexpr uint32_t kSectorBytes = 512;

enum class Technology : uint8_t { kSlc = 1, kMlc = 2, kTlc = 3, kQlc = 4 };  // bits per cell
enum class CacheMode : uint8_t { kOff, kWrite, kRead, kReadWrite };
enum class GcPolicy : uint8_t { kGreedy, kRga, kRandom, kRandomP, kRandomPp, kFifo };
// Urgent goes first; the others share 4 : 2 : 1.
enum class PriorityClass : uint8_t { kUrgent, kHigh, kMedium, kLow };
inline constexpr uint32_t kPriorityClasses = 4;

// One level of the drive's parallelism, and the order in which pages are spread over them.
enum class Level : uint8_t { kChannel, kWay, kDie, kPlane };
using Spread = std::array<Level, 4>;
inline constexpr Spread kChannelFirst = {Level::kChannel, Level::kWay, Level::kDie, Level::kPlane};

// One submission queue and the part of the drive behind it.
struct StreamParameters {
  PriorityClass priority = PriorityClass::kHigh;
  CacheMode cache = CacheMode::kWrite;
  // The channels this stream's pages live on; empty means all. Streams that share a channel share
  // its planes evenly.
  std::vector<uint32_t> channels;
};

struct Parameters {
  // Reproduces the behaviour of the MQSim reference, faults included; see docs/flash.md.
  bool mqsim = false;

  // Host link: PCIe packets of at most 128 bytes, each with 28 bytes of header.
  double lane_gb_per_s = 1.0;
  uint32_t lanes = 4;
  uint32_t queue_depth = 65535;
  uint32_t queue_fetch = 512;
  // What firmware and interrupts add to a command, however many there are at once. The reference
  // has nothing like it.
  Nanos command_ns = 0;

  // Data cache.
  uint64_t cache_bytes = 256ULL << 20;
  uint32_t dram_row_bytes = 8192;
  uint32_t dram_mt_per_s = 800;
  uint32_t dram_burst_bytes = 4;
  Nanos dram_trcd_ns = 13;
  Nanos dram_tcl_ns = 13;
  Nanos dram_trp_ns = 13;
  // Pages per plane that may be on their way from the cache to flash.
  uint32_t write_back_pages = 1;
  // A full cache makes a write wait rather than give up a clean page or one being written back, as
  // the authors of SNIS changed the reference.
  bool cache_evicts_dirty_only = false;
  // Capacitors keep the cache through a power cut. Without them a flush waits for flash.
  bool cache_protected = true;

  // Mapping.
  bool ideal_mapping = false;
  uint64_t mapping_cache_bytes = 2ULL << 20;
  Spread spread = kChannelFirst;
  bool dynamic_spread = false;  // a page goes to the least busy plane instead
  double over_provisioning = 0.07;

  // Garbage collection and wear.
  GcPolicy gc_policy = GcPolicy::kGreedy;
  double gc_threshold = 0.05;        // part of a plane's blocks that should be free
  double gc_hard_threshold = 0.005;  // below it, collection goes before the user
  bool gc_preemptible = true;
  bool copyback = false;  // the collector moves pages inside their plane, past the bus
  bool dynamic_wear_levelling = true;
  bool static_wear_levelling = true;
  uint32_t static_wear_threshold = 100;
  uint32_t random_pp_invalid_pages = 0;  // the least a RANDOM_PP victim holds
  uint32_t pe_cycles = 10000;

  // Suspension.
  bool suspend_program = false;
  bool suspend_erase = true;
  Nanos suspend_program_ns = 100'000;
  Nanos suspend_erase_ns = 700'000;
  Nanos worth_suspending_program_ns = 100'000;  // what must be left of it
  Nanos worth_suspending_erase_ns = 700'000;

  // Flash.
  uint32_t channels = 8;
  uint32_t channel_width_bytes = 1;
  uint32_t channel_mt_per_s = 333;
  uint32_t chips_per_channel = 4;
  uint32_t dies_per_chip = 2;
  uint32_t planes_per_die = 2;
  uint32_t blocks_per_plane = 2048;
  uint32_t pages_per_block = 256;
  uint32_t page_bytes = 8192;
  Technology technology = Technology::kMlc;
  // By page type, lower bit first; only the first bits-per-cell count.
  std::array<Nanos, 4> read_ns = {75'000, 75'000, 75'000, 75'000};
  std::array<Nanos, 4> program_ns = {750'000, 750'000, 750'000, 750'000};
  Nanos erase_ns = 3'800'000;

  uint64_t seed = 321;
  std::vector<StreamParameters> streams = {StreamParameters{}};

  uint32_t sectors_per_page() const { return page_bytes / kSectorBytes; }
  uint64_t planes() const {
    return uint64_t{channels} * chips_per_channel * dies_per_chip * planes_per_die;
  }
  uint64_t physical_pages() const { return planes() * blocks_per_plane * pages_per_block; }
};

// What is wrong with a set of parameters: the name of the member, and what to do about it.
struct ParameterProblem {
  std::string member;
  std::string text;
  // Other members that take part, for when `member` has its default: the likeliest first.
  std::vector<std::string> others;
};

// Nothing when a drive can be built of them.
std::optional<ParameterProblem> check(const Parameters& parameters);

// "CWDP" and the 23 other orders; nothing when `text` is none of them.
std::optional<Spread> parse_spread(std::string_view text);
std::string text(const Spread& spread);

}  // namespace cairn::flash
