// SPDX-License-Identifier: Apache-2.0
#include "volume/types.h"

#include <algorithm>
#include <bit>

namespace cairn::volume {

namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

Result<void> check_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
  };
  if (name.empty() || name.size() > kNameMax || !is_letter_or_digit(name.front()) ||
      !std::ranges::all_of(name, is_allowed)) {
    return fail(Errc::kInvalid, "a name has 1 to 64 letters, digits, '-', '_' and '.'");
  }
  return {};
}

Result<void> check_snapshot_name(std::string_view name) {
  const size_t mark = name.find(kSnapshotMark);
  if (mark == name.npos || !check_name(name.substr(0, mark)) ||
      !check_name(name.substr(mark + 1))) {
    return fail(Errc::kInvalid, "a snapshot is called VOLUME@NAME");
  }
  return {};
}

std::string snapshot_name(std::string_view volume, std::string_view name) {
  return std::string(volume) + kSnapshotMark + std::string(name);
}

Result<void> check_replicas(uint32_t replicas) {
  if (replicas >= 1 && replicas <= kReplicasMax) return {};
  return fail(Errc::kInvalid, "a volume has 1 to 3 replicas", static_cast<int32_t>(replicas));
}

Result<void> check_weights(const Weights& weights) {
  for (const int32_t each :
       {weights.extents, weights.used, weights.busy, weights.fragmentation, weights.preference}) {
    if (each < -kWeightMax || each > kWeightMax) {
      return fail(Errc::kInvalid, "a weight of placement is out of range", each);
    }
  }
  return {};
}

Result<void> check_extent_bytes(uint64_t bytes) {
  if (std::has_single_bit(bytes) && bytes >= kExtentBytesMin && bytes <= kExtentBytesMax) return {};
  return fail(Errc::kInvalid, "extents have a power of two of bytes, 64 KiB to 64 MiB");
}

}  // namespace cairn::volume
