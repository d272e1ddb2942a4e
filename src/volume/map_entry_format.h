// SPDX-License-Identifier: Apache-2.0
// MapEntry: where one extent of a volume lies, in 16 bytes: 8 MiB of memory for 1 TiB of extents.
//
//   0    three legs of 5 bytes: 12 bits for the drive, 28 for the extent there, little-endian;
//        those that are not there are zero
//   15   bits 0-1: how many legs there are; bits 2-4: which of them are stale; bits 5-7: zero
//
// Legs are in the order of the chain, its head first. A stale leg lacks writes: it is not read
// until somebody has copied to it. Every entry that has legs has one that is not stale.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "volume/types.h"

namespace cairn::volume {

struct Leg {
  MegaVolId mega_vol;
  uint32_t extent = 0;
  bool is_stale = false;
  friend bool operator==(const Leg&, const Leg&) = default;
};

class MapEntry {
 public:
  static constexpr size_t kSize = 16;

  size_t size() const { return bytes_[kFlags] & 3U; }
  bool is_mapped() const { return size() > 0; }

  Leg leg(size_t index) const {
    uint64_t packed = 0;
    for (size_t i = kLegBytes; i-- > 0;) packed = packed << 8 | bytes_[index * kLegBytes + i];
    return {.mega_vol = MegaVolId(static_cast<uint16_t>(packed >> 28)),
            .extent = static_cast<uint32_t>(packed & (kMegaVolExtentsMax - 1)),
            .is_stale = (bytes_[kFlags] & stale_bit(index)) != 0};
  }
  bool has_stale() const { return bytes_[kFlags] > kReplicasMax; }
  // The leg on a drive; size() when there is none.
  size_t find(MegaVolId mega_vol) const {
    size_t index = 0;
    while (index < size() && leg(index).mega_vol != mega_vol) ++index;
    return index;
  }
  size_t in_sync() const {
    size_t count = 0;
    for (size_t i = 0; i < size(); ++i) count += leg(i).is_stale ? 0 : 1;
    return count;
  }

  // Behind the others.
  void add(const Leg& leg) {
    CHECK(size() < kReplicasMax && leg.extent < kMegaVolExtentsMax);
    set(size(), leg);
    ++bytes_[kFlags];
  }
  void remove(size_t index) {
    for (size_t i = index; i + 1 < size(); ++i) set(i, leg(i + 1));
    set(size() - 1, {});
    --bytes_[kFlags];
  }
  void set_stale(size_t index, bool is_stale) {
    const auto bit = static_cast<uint8_t>(stale_bit(index));
    bytes_[kFlags] = static_cast<uint8_t>(is_stale ? bytes_[kFlags] | bit : bytes_[kFlags] & ~bit);
  }

  void store(MutableBytes to) const { cairn::store(to, bytes_); }
  // Bytes from a medium. kCorrupt: no such entry.
  static Result<MapEntry> load(Bytes from);
  friend bool operator==(const MapEntry&, const MapEntry&) = default;

 private:
  static constexpr size_t kLegBytes = 5;
  static constexpr size_t kFlags = 15;
  static unsigned stale_bit(size_t index) { return 4U << index; }
  void set(size_t index, const Leg& leg) {
    uint64_t packed = uint64_t{leg.mega_vol.value()} << 28 | leg.extent;
    for (size_t i = 0; i < kLegBytes; ++i, packed >>= 8) {
      bytes_[index * kLegBytes + i] = static_cast<uint8_t>(packed);
    }
    set_stale(index, leg.is_stale);
  }

  std::array<uint8_t, kSize> bytes_{};
};
static_assert(sizeof(MapEntry) == MapEntry::kSize);

inline Result<MapEntry> MapEntry::load(Bytes from) {
  MapEntry entry;
  entry.bytes_ = cairn::load<std::array<uint8_t, kSize>>(from);
  // What was packed again must be what came: no bits besides, none of legs that are not there.
  MapEntry again;
  for (size_t i = 0; i < entry.size(); ++i) {
    const Leg leg = entry.leg(i);
    if (leg.extent == 0 || leg.mega_vol.value() >= kMegaVolsMax ||
        again.find(leg.mega_vol) < again.size()) {
      return fail(Errc::kCorrupt, "an extent's legs make no sense");
    }
    again.add(leg);
  }
  if (again != entry || (entry.is_mapped() && entry.in_sync() == 0)) {
    return fail(Errc::kCorrupt, "an extent's entry makes no sense");
  }
  return entry;
}

}  // namespace cairn::volume
