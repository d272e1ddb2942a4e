// SPDX-License-Identifier: Apache-2.0
// What operators are shown of a pool: values that can go to another process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arbiter/placement.h"
#include "arbiter/pool.h"
#include "arbiter/record_format.h"

namespace cairn::arbiter {

inline constexpr size_t kVolumesPageMax = 1024;

struct DriveView {
  MegaVolInfo info;
  uint64_t free = 0;      // extents
  uint64_t legs = 0;      // extents of volumes
  uint64_t cleaning = 0;  // extents to be cleared before they are free
  uint64_t unfenced = 0;  // hosts that lost what they had and may still write to it
};

struct PoolView {
  Uuid uuid{};
  uint64_t extent_bytes = 0;
  uint64_t volumes = 0;
  std::vector<DriveView> drives;
};

struct VolumeView {
  VolumeRecord record;
  share::Terms terms;
  uint64_t bytes = 0;         // that its user sees
  uint64_t extent_bytes = 0;  // of its pool
  uint64_t mapped = 0;        // extents that have space
  uint64_t shared = 0;        // of these: that snapshots or clones have too
  uint64_t lacking = 0;       // of these: with fewer replicas in order than the volume has
};

// Volumes by name.
struct VolumePage {
  std::vector<VolumeView> volumes;
  bool more = false;
};

// How much of a volume a drive has.
struct DriveShare {
  MegaVolId id;
  uint32_t extents = 0;
};

struct VolumeDetail {
  VolumeView volume;
  std::vector<DriveShare> drives;
  std::vector<ScoreMatrix> matrices;  // of its last placements, newest last
};

// One arbiter of several.
struct ArbiterView {
  std::string host;
  bool is_leading = false;
  std::string problem;  // why it does not lead although it was elected
};

PoolView view_of(const Pool& pool);
VolumeView view_of(const Pool& pool, const Volume& volume);
VolumeDetail detail_of(const Pool& pool, const Volume& volume);
// Those whose names come after this one, at most kVolumesPageMax.
VolumePage volumes_after(const Pool& pool, const std::string& name);

}  // namespace cairn::arbiter
