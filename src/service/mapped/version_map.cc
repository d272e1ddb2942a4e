// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/version_map.h"

#include <algorithm>
#include <charconv>

namespace cairn::drive {

uint32_t VersionMap::find_at(uint64_t chunk, uint32_t version) const {
  const Entry newest = newest_.get(chunk);
  if (newest.born <= version) return newest.unit;
  auto after = history_.upper_bound({chunk, version});
  if (after == history_.begin()) return kHole;
  const auto& [key, unit] = *--after;
  return key.chunk == chunk ? unit : kHole;
}

uint32_t VersionMap::find_in(const Clone& clone, uint64_t chunk) const {
  const uint32_t unit = clone.units.get(chunk);
  if (unit == kCloneHole) return kHole;
  return unit == kUnset ? find_at(chunk, clone.base) : unit;
}

bool VersionMap::is_own_in(const Clone& clone, uint64_t chunk) const {
  const uint32_t unit = clone.units.get(chunk);
  return unit != kUnset && unit != kCloneHole;
}

Result<void> VersionMap::check_name(std::string_view name) const {
  const bool is_plain = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
  if (!is_plain || name.size() > kNameMax || (!name.empty() && name[0] >= '0' && name[0] <= '9')) {
    return fail(Errc::kInvalid,
                "a name has up to 32 letters, digits, '-', '_' and '.', and begins with no digit");
  }
  return {};
}

Result<uint32_t> VersionMap::version(std::string_view name) const {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = error == std::errc{} && end == name.data() + name.size();
  for (const auto& [version, called] : versions_) {
    if (is_number ? version == number : !name.empty() && called == name) return version;
  }
  return fail(Errc::kNotFound, "there is no such version: list tells those there are");
}

Result<uint32_t> VersionMap::clone(std::string_view name) const {
  for (const auto& [number, clone] : clones_) {
    if (clone.name == name) return number;
  }
  return fail(Errc::kNotFound, "there is no such clone: list tells those there are");
}

bool VersionMap::has_clone_on(uint32_t from, uint32_t to) const {
  return std::ranges::any_of(
      clones_, [&](const auto& one) { return one.second.base >= from && one.second.base < to; });
}

void VersionMap::find_last() { last_version_ = versions_.empty() ? 0 : versions_.rbegin()->first; }

Result<void> VersionMap::set(uint64_t chunk, uint32_t unit, Freed& freed) {
  if (chunk >= limits_.chunks) return fail(Errc::kInvalid, "a chunk beyond the end");
  const Entry old = newest_.get(chunk);
  const bool is_seen = old.born <= last_version_ && has_version_in(old.born, epoch_);
  if (is_seen && (old.unit != kHole || is_kept(chunk))) {
    history_[{chunk, old.born}] = old.unit;
  } else if (old.unit != kHole) {
    freed.push_back(old.unit);
  }
  newest_.set(chunk, {.unit = unit, .born = epoch_});
  return {};
}

Result<void> VersionMap::set_in(uint32_t clone, uint64_t chunk, uint32_t unit, Freed& freed) {
  const auto found = clones_.find(clone);
  if (found == clones_.end() || chunk >= limits_.chunks || unit == kCloneHole) {
    return fail(Errc::kInvalid, "a chunk beyond the end, or of no clone");
  }
  ChunkTable<uint32_t>& units = found->second.units;
  const uint32_t old = units.get(chunk);
  const bool hides = find_at(chunk, found->second.base) != kHole;
  const bool becomes_hole = unit == kHole && hides;
  if (becomes_hole && old != kCloneHole && !has_room_for_hole()) {
    return fail(Errc::kLimit, "there are too many holes in clones");
  }
  if (old == kCloneHole) {
    --clone_holes_;
  } else if (old != kUnset) {
    freed.push_back(old);
  }
  if (becomes_hole) ++clone_holes_;
  units.set(chunk, becomes_hole ? kCloneHole : unit);
  return {};
}

Result<uint32_t> VersionMap::take(std::string_view name) {
  if (Result<void> checked = check_name(name); !checked) return fail(checked.error());
  if (!name.empty() && version(name)) return fail(Errc::kExists, "there is a version of that name");
  if (versions_.size() >= limits_.versions || epoch_ >= kCloneHole - 1) {
    return fail(Errc::kLimit, "there are as many versions as this drive can keep: remove one");
  }
  versions_[epoch_] = name;
  last_version_ = epoch_;
  return epoch_++;
}

Result<void> VersionMap::remove(uint32_t version, Freed& freed) {
  if (!versions_.contains(version)) return fail(Errc::kNotFound, "there is no such version");
  if (has_clone_on(version, version + 1)) {
    return fail(Errc::kDenied, "a clone stands on the version: remove the clone first");
  }
  versions_.erase(version);
  find_last();
  for (auto entry = history_.begin(); entry != history_.end();) {
    const auto next = std::next(entry);
    const auto [chunk, born] = entry->first;
    const bool is_last = next == history_.end() || next->first.chunk != chunk;
    const uint32_t end = is_last ? newest_.get(chunk).born : next->first.born;
    // A hole that hides nothing says nothing.
    const bool is_first = entry == history_.begin() || std::prev(entry)->first.chunk != chunk;
    if (!has_version_in(born, end) || (is_first && entry->second == kHole)) {
      if (entry->second != kHole) freed.push_back(entry->second);
      history_.erase(entry);
    }
    entry = next;
  }
  return {};
}

Result<void> VersionMap::rollback(uint32_t version, Freed& freed) {
  if (!versions_.contains(version)) return fail(Errc::kNotFound, "there is no such version");
  if (has_clone_on(version + 1, epoch_)) {
    return fail(Errc::kDenied, "a clone stands on a later version: remove the clone first");
  }
  versions_.erase(versions_.upper_bound(version), versions_.end());
  find_last();
  std::vector<std::pair<uint64_t, Entry>> changed;
  newest_.for_each([&](uint64_t chunk, const Entry& entry) {
    if (entry.born > version) changed.emplace_back(chunk, entry);
  });
  for (auto& [chunk, entry] : changed) {
    if (entry.unit != kHole) freed.push_back(entry.unit);
    entry = {};
    // What was born after the version goes too; the one before it is the newest again.
    for (auto end = history_.upper_bound({chunk, UINT32_MAX}); end != history_.begin();) {
      const auto last = std::prev(end);
      if (last->first.chunk != chunk) break;
      const Entry kept{.unit = last->second, .born = last->first.born};
      end = history_.erase(last);
      if (kept.born <= version) {
        entry = kept;
        break;
      }
      if (kept.unit != kHole) freed.push_back(kept.unit);
    }
    newest_.set(chunk, entry);
  }
  return {};
}

Result<uint32_t> VersionMap::make_clone(uint32_t version, std::string_view name) {
  if (!versions_.contains(version)) return fail(Errc::kNotFound, "there is no such version");
  if (Result<void> checked = check_name(name); !checked) return fail(checked.error());
  if (name.empty()) return fail(Errc::kInvalid, "a clone has a name");
  if (clone(name)) return fail(Errc::kExists, "there is a clone of that name");
  if (clones_.size() >= kClonesMax || next_clone_ == UINT32_MAX) {
    return fail(Errc::kLimit, "there are 16 clones, which is the most: remove one");
  }
  clones_[next_clone_] = {
      .base = version, .name = std::string(name), .units = ChunkTable<uint32_t>(limits_.chunks)};
  return next_clone_++;
}

Result<void> VersionMap::drop_clone(uint32_t clone, Freed& freed) {
  const auto found = clones_.find(clone);
  if (found == clones_.end()) return fail(Errc::kNotFound, "there is no such clone");
  found->second.units.for_each([&](uint64_t, uint32_t unit) {
    if (unit == kCloneHole) {
      --clone_holes_;
    } else if (unit != kUnset) {
      freed.push_back(unit);
    }
  });
  clones_.erase(found);
  return {};
}

Result<void> VersionMap::restore(const SnapshotRecord& saved, std::string_view name) {
  const auto wrong = [] { return fail(Errc::kCorrupt, "the map of versions makes no sense"); };
  const bool is_entry =
      saved.kind == SnapshotRecord::kKept || saved.kind == SnapshotRecord::kNewest;
  if (is_entry && (saved.chunk >= limits_.chunks || saved.number > epoch_)) return wrong();
  switch (saved.kind) {
    case SnapshotRecord::kEpochs:
      if (saved.number == 0 || saved.unit == 0) return wrong();
      epoch_ = saved.number;
      next_clone_ = saved.unit;
      return {};
    case SnapshotRecord::kVersion:
      if (saved.number >= epoch_ || !check_name(name)) return wrong();
      versions_[saved.number] = name;
      find_last();
      return {};
    case SnapshotRecord::kClone:
      if (saved.number >= next_clone_ || !versions_.contains(saved.chunk) || !check_name(name)) {
        return wrong();
      }
      clones_[saved.number] = {.base = saved.chunk,
                               .name = std::string(name),
                               .units = ChunkTable<uint32_t>(limits_.chunks)};
      return {};
    case SnapshotRecord::kKept:
      if (!history_.emplace(Key{saved.chunk, saved.number}, saved.unit).second) return wrong();
      return {};
    case SnapshotRecord::kNewest:
      if (newest_.get(saved.chunk).unit != kHole) return wrong();
      newest_.set(saved.chunk, {.unit = saved.unit, .born = saved.number});
      return {};
    case SnapshotRecord::kInClone: {
      const auto clone = clones_.find(saved.number);
      if (clone == clones_.end() || saved.chunk >= limits_.chunks ||
          clone->second.units.get(saved.chunk) != kUnset) {
        return wrong();
      }
      if (saved.unit == kCloneHole) ++clone_holes_;
      clone->second.units.set(saved.chunk, saved.unit);
      return {};
    }
    default:
      return wrong();
  }
}

}  // namespace cairn::drive
