// SPDX-License-Identifier: Apache-2.0
#include "view/types.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/check.h"

namespace cairn::view {

namespace {

constexpr int kRttLowBits = 14;  // 16.4 us, in nanoseconds
constexpr uint64_t kBytesPerSecondMax = 1'000'000'000'000;

bool is_sound_speed(uint64_t bytes_per_s) {
  return bytes_per_s > 0 && bytes_per_s <= kBytesPerSecondMax;
}

}  // namespace

bool is_sound_name(const std::string& name) {
  return !name.empty() && name.size() <= kNameMax &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 127; });
}

Result<void> check_box(const BoxSpec& box) {
  if (!is_sound_name(box.name)) {
    return fail(Errc::kInvalid, "the name of a box has 1 to 64 visible characters");
  }
  if (box.ports == 0 || box.ports > kPortsMax) {
    return fail(Errc::kInvalid, "a box has 1 to 256 ports");
  }
  if (box.drives.empty() || box.drives.size() > kDrivesMax) {
    return fail(Errc::kInvalid, "a box has 1 to 1024 drives");
  }
  if (!is_sound_speed(box.port_bytes_per_s)) {
    return fail(Errc::kInvalid, "a port carries 1 byte to 1 TB in a second");
  }
  std::set<std::string> names;
  for (const DriveSpec& drive : box.drives) {
    if (!is_sound_name(drive.name)) {
      return fail(Errc::kInvalid, "the name of a drive has 1 to 64 visible characters");
    }
    if (!names.insert(drive.name).second) {
      return fail(Errc::kInvalid, "two drives of a box have one name");
    }
    if (!is_sound_speed(drive.profile.bytes_per_s)) {
      return fail(Errc::kInvalid, "a drive reads 1 byte to 1 TB in a second");
    }
  }
  return {};
}

size_t size_class(uint32_t bytes) {
  if (bytes <= 4096) return 0;
  const auto doublings = static_cast<size_t>(std::bit_width(bytes - 1)) - 12;
  return std::min(doublings, kSizeClasses - 1);
}

std::string size_class_text(size_t size_class) {
  CHECK(size_class < kSizeClasses);
  if (size_class + 1 == kSizeClasses) return "more than 256 KiB";
  return text_bytes(uint64_t{4096} << size_class);
}

size_t rtt_bucket(Duration rtt) {
  if (rtt.ns < int64_t{1} << kRttLowBits) return 0;
  const auto ns = static_cast<uint64_t>(rtt.ns);
  const int top = std::bit_width(ns) - 1;
  const auto quarter = static_cast<size_t>((ns >> (top - 2)) & 3);
  return std::min((static_cast<size_t>(top - kRttLowBits) * 4) + quarter + 1, kRttBuckets - 1);
}

Duration rtt_of_bucket(size_t bucket) {
  CHECK(bucket < kRttBuckets);
  if (bucket == 0) return {int64_t{1} << kRttLowBits};
  const size_t octave = (bucket - 1) / 4;
  const auto quarter = static_cast<int64_t>((bucket - 1) % 4);
  return {((5 + quarter) << (kRttLowBits - 2)) << octave};
}

}  // namespace cairn::view
