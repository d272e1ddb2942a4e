// SPDX-License-Identifier: Apache-2.0
#include "arbiter/views.h"

#include <map>

namespace cairn::arbiter {

PoolView view_of(const Pool& pool) {
  PoolView view{.uuid = pool.record.uuid,
                .extent_bytes = pool.record.extent_bytes,
                .volumes = 0,
                .drives = {}};
  for (const auto& [id, volume] : pool.volumes()) view.volumes += volume.record.is_snapshot ? 0 : 1;
  view.drives.reserve(pool.members().size());
  for (const auto& [id, member] : pool.members()) {
    view.drives.push_back({.info = member.info,
                           .free = member.extents.free(),
                           .legs = member.legs,
                           .cleaning = member.cleaning,
                           .unfenced = member.unfenced.size()});
  }
  return view;
}

VolumeView view_of(const Pool& pool, const Volume& volume) {
  const uint64_t each = pool.record.extent_bytes;
  VolumeView view{.record = volume.record,
                  .terms = volume.terms,
                  .bytes = (volume.record.extents - volume::kFirstDataExtent) * each,
                  .extent_bytes = each,
                  .mapped = volume.mapped,
                  .shared = volume.to_copy};
  for (const MapEntry& entry : volume.table) {
    view.lacking += entry.is_mapped() && entry.in_sync() < volume.record.replicas ? 1 : 0;
  }
  return view;
}

VolumeDetail detail_of(const Pool& pool, const Volume& volume) {
  VolumeDetail detail{.volume = view_of(pool, volume), .drives = {}, .matrices = {}};
  for (const auto& [id, extents] : volume.legs) {
    if (extents > 0) detail.drives.push_back({.id = id, .extents = extents});
  }
  detail.matrices.assign(volume.matrices.begin(), volume.matrices.end());
  return detail;
}

VolumePage volumes_after(const Pool& pool, const std::string& name) {
  std::map<std::string, const Volume*> sorted;
  for (const auto& [id, volume] : pool.volumes()) {
    if (volume.record.name <= name) continue;
    sorted.emplace(volume.record.name, &volume);
    if (sorted.size() > kVolumesPageMax + 1) sorted.erase(std::prev(sorted.end()));
  }
  VolumePage page{.volumes = {}, .more = sorted.size() > kVolumesPageMax};
  for (const auto& [its_name, volume] : sorted) {
    if (page.volumes.size() == kVolumesPageMax) break;
    page.volumes.push_back(view_of(pool, *volume));
  }
  return page;
}

}  // namespace cairn::arbiter
