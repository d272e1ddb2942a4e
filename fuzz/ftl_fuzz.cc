// SPDX-License-Identifier: Apache-2.0
// Any bytes as a small drive and what is asked of it: after each power cut and at the end the
// drive's tables are those of a plain map.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "testing/flash/checked_drive.h"

namespace {

using namespace cairn::flash;

Parameters drive_of(std::span<const uint8_t, 4> bytes) {
  Parameters p;
  p.channels = 1 + (bytes[0] & 1);
  p.chips_per_channel = 1;
  p.dies_per_chip = 1 + (bytes[0] >> 1 & 1);
  p.planes_per_die = 1 + (bytes[0] >> 2 & 1);
  p.cache_protected = (bytes[0] >> 3 & 1) != 0;
  p.dynamic_spread = (bytes[0] >> 4 & 1) != 0;
  p.ideal_mapping = (bytes[0] >> 5 & 1) != 0;
  p.copyback = (bytes[0] >> 6 & 1) != 0;
  p.gc_preemptible = (bytes[0] >> 7 & 1) != 0;
  p.gc_policy = static_cast<GcPolicy>(bytes[1] % 6);
  p.streams.resize(1 + (bytes[1] >> 7));
  p.streams[0].cache = static_cast<CacheMode>(bytes[1] >> 3 & 3);
  p.streams.back().priority = static_cast<PriorityClass>(bytes[1] >> 5 & 3);
  p.dynamic_wear_levelling = (bytes[2] & 1) != 0;
  p.static_wear_levelling = (bytes[2] >> 1 & 1) != 0;
  p.static_wear_threshold = 1 + (bytes[2] >> 2 & 7);
  p.suspend_program = (bytes[2] >> 5 & 1) != 0;
  p.cache_evicts_dirty_only = (bytes[2] >> 6 & 1) != 0;
  p.worth_suspending_program_ns = p.worth_suspending_erase_ns = 20'000;
  p.suspend_program_ns = p.suspend_erase_ns = 5'000;
  p.page_bytes = 512U << (bytes[3] & 7) > 32768 ? 32768 : 512U << (bytes[3] & 7);
  p.pages_per_block = 2 + (bytes[3] >> 3 & 7);
  p.blocks_per_plane = 32;
  p.over_provisioning = 0.5;
  p.cache_bytes = 16ULL * p.page_bytes;
  p.mapping_cache_bytes = 4096;
  p.read_ns.fill(20'000);
  p.program_ns.fill(100'000);
  p.erase_ns = 500'000;
  return p;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 5) return 0;
  const Parameters parameters = drive_of(std::span<const uint8_t, 4>(data, 4));
  CHECK(!check(parameters), "the fuzzer makes drives that can be");
  CheckedDrive drive(parameters, (data[4] & 1) != 0 ? 0.7 : 0.0);
  CHECK(play(drive, std::span(data + 5, size - 5)).empty());
  return 0;
}
