// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/version_map.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"

namespace cairn::drive {
namespace {

constexpr uint64_t kChunks = 20;
constexpr VersionMap::Limits kLimits{.chunks = kChunks, .versions = 12, .clone_holes = 30};
using Units = std::vector<uint32_t>;

// The same by whole copies.
struct Model {
  Units now = Units(kChunks);
  std::map<uint32_t, Units> versions;
  struct Clone {
    uint32_t base = 0;
    Units units;
  };
  std::map<uint32_t, Clone> clones;

  std::set<uint32_t> in_use() const {
    std::set<uint32_t> used(now.begin(), now.end());
    for (const auto& [version, units] : versions) used.insert(units.begin(), units.end());
    for (const auto& [number, clone] : clones) used.insert(clone.units.begin(), clone.units.end());
    used.erase(0);
    return used;
  }
};

void expect_equal(const VersionMap& map, const Model& model) {
  ASSERT_EQ(map.versions().size(), model.versions.size());
  ASSERT_EQ(map.clones().size(), model.clones.size());
  for (uint64_t chunk = 0; chunk < kChunks; ++chunk) {
    ASSERT_EQ(map.find(chunk), model.now[chunk]);
    bool is_shared = false;
    for (const auto& [version, units] : model.versions) {
      ASSERT_EQ(map.find_at(chunk, version), units[chunk]) << version;
      is_shared = is_shared || units[chunk] == model.now[chunk];
    }
    if (model.now[chunk] != 0) {
      ASSERT_EQ(map.is_own(chunk), !is_shared);
    }
    for (const auto& [number, clone] : model.clones) {
      ASSERT_EQ(map.find_in(map.clones().at(number), chunk), clone.units[chunk]);
    }
  }
}

VersionMap restored(const VersionMap& map, uint64_t& entries) {
  VersionMap again(kLimits);
  entries = 0;
  const auto restore = [&](const SnapshotRecord& saved, std::string_view name) {
    const Result<void> done = again.restore(saved, name);
    EXPECT_TRUE(done.has_value()) << (done ? "" : done.error().text());
    if (saved.kind >= SnapshotRecord::kKept) ++entries;
  };
  map.save_versions(restore);
  for (uint64_t chunk = 0; chunk < map.chunks();) chunk = map.save_chunks(chunk, restore);
  return again;
}

template <class Map>
uint32_t any_of(Rng& rng, const Map& map) {
  return std::next(map.begin(), static_cast<ptrdiff_t>(rng.below(map.size())))->first;
}

TEST(VersionMap, AgreesWithWholeCopies) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    VersionMap map(kLimits);
    Model model;
    std::set<uint32_t> used;
    uint32_t next_unit = 1;
    for (int step = 0; step < 600; ++step) {
      VersionMap::Freed freed;
      const uint64_t draw = rng.below(100);
      const uint64_t chunk = rng.below(kChunks);
      if (draw < 50) {
        const uint32_t unit = rng.bernoulli(0.2) && model.now[chunk] != 0 ? 0 : next_unit++;
        if (unit != 0) used.insert(unit);
        ASSERT_TRUE(map.set(chunk, unit, freed));
        model.now[chunk] = unit;
      } else if (draw < 60) {
        const Result<uint32_t> taken = map.take("");
        ASSERT_EQ(taken.has_value(), model.versions.size() < kLimits.versions);
        if (taken) model.versions[*taken] = model.now;
      } else if (draw < 70 && !model.versions.empty()) {
        const uint32_t version = any_of(rng, model.versions);
        bool is_base = false;
        for (const auto& [number, clone] : model.clones) is_base |= clone.base == version;
        ASSERT_EQ(map.remove(version, freed).has_value(), !is_base);
        if (!is_base) model.versions.erase(version);
      } else if (draw < 74 && !model.versions.empty()) {
        const uint32_t version = any_of(rng, model.versions);
        bool is_later_base = false;
        for (const auto& [number, clone] : model.clones) is_later_base |= clone.base > version;
        ASSERT_EQ(map.rollback(version, freed).has_value(), !is_later_base);
        if (!is_later_base) {
          model.now = model.versions[version];
          model.versions.erase(model.versions.upper_bound(version), model.versions.end());
        }
      } else if (draw < 78 && !model.versions.empty()) {
        const uint32_t version = any_of(rng, model.versions);
        const Result<uint32_t> made = map.make_clone(version, "c" + std::to_string(step));
        ASSERT_EQ(made.has_value(), model.clones.size() < VersionMap::kClonesMax);
        if (made) model.clones[*made] = {version, model.versions[version]};
      } else if (draw < 95 && !model.clones.empty()) {
        const uint32_t number = any_of(rng, model.clones);
        Units& units = model.clones[number].units;
        const bool is_hole = rng.bernoulli(0.3) && units[chunk] != 0 && map.has_room_for_hole();
        const uint32_t unit = is_hole ? 0 : next_unit++;
        if (unit != 0) used.insert(unit);
        ASSERT_TRUE(map.set_in(number, chunk, unit, freed));
        units[chunk] = unit;
      } else if (!model.clones.empty()) {
        const uint32_t number = any_of(rng, model.clones);
        ASSERT_TRUE(map.drop_clone(number, freed));
        model.clones.erase(number);
      }
      for (const uint32_t unit : freed) ASSERT_EQ(used.erase(unit), 1u);
      ASSERT_EQ(used, model.in_use()) << "seed " << seed << " step " << step;
      expect_equal(map, model);
      if (rng.bernoulli(0.1)) {
        uint64_t entries = 0;
        map = restored(map, entries);
        expect_equal(map, model);
        // A hole is remembered only where it hides a unit, and so many in clones.
        ASSERT_LE(entries, 2 * used.size() + kLimits.clone_holes);
      }
    }
  }
}

// As older versions of the program saved it: all kept entries first, the clones last.
TEST(VersionMap, RestoresTheOrderOfOlderCheckpoints) {
  using Kind = SnapshotRecord::Kind;
  struct {
    SnapshotRecord saved;
    const char* name;
  } const kRecords[] = {
      {{.kind = Kind::kEpochs, .unit = 2, .number = 3}, ""},
      {{.kind = Kind::kVersion, .number = 1}, "first"},
      {{.kind = Kind::kVersion, .number = 2}, ""},
      {{.kind = Kind::kKept, .chunk = 4, .unit = 7, .number = 1}, ""},
      {{.kind = Kind::kKept, .chunk = 9, .unit = 8, .number = 2}, ""},
      {{.kind = Kind::kNewest, .chunk = 4, .unit = 10, .number = 3}, ""},
      {{.kind = Kind::kNewest, .chunk = 9, .unit = 0, .number = 3}, ""},
      {{.kind = Kind::kClone, .chunk = 1, .number = 1}, "c"},
      {{.kind = Kind::kInClone, .chunk = 4, .unit = 11, .number = 1}, ""},
      {{.kind = Kind::kInClone, .chunk = 5, .unit = VersionMap::kCloneHole, .number = 1}, ""},
  };
  VersionMap map(kLimits);
  for (const auto& [saved, name] : kRecords) EXPECT_TRUE(map.restore(saved, name).has_value());
  EXPECT_EQ(map.find(4), 10u);
  EXPECT_EQ(map.find(9), VersionMap::kHole);
  EXPECT_EQ(map.find_at(4, 1), 7u);
  EXPECT_EQ(map.find_at(9, 2), 8u);
  EXPECT_EQ(map.find_in(map.clones().at(1), 4), 11u);
  EXPECT_EQ(map.epoch(), 3u);
}

TEST(VersionMap, RefusesWhatCannotBe) {
  VersionMap map(kLimits);
  VersionMap::Freed freed;
  EXPECT_EQ(map.set(kChunks, 1, freed).error().code(), Errc::kInvalid);
  EXPECT_EQ(map.set_in(1, 0, 1, freed).error().code(), Errc::kInvalid);
  EXPECT_EQ(map.take("a b").error().code(), Errc::kInvalid);
  EXPECT_EQ(map.take("1st").error().code(), Errc::kInvalid);
  EXPECT_EQ(map.take(std::string(33, 'x')).error().code(), Errc::kInvalid);
  EXPECT_EQ(map.take("first"), 1u);
  EXPECT_EQ(map.take("first").error().code(), Errc::kExists);
  EXPECT_EQ(map.version("first"), 1u);
  EXPECT_EQ(map.version("1"), 1u);
  EXPECT_EQ(map.version("").error().code(), Errc::kNotFound);
  EXPECT_EQ(map.version("2").error().code(), Errc::kNotFound);
  EXPECT_EQ(map.make_clone(2, "c").error().code(), Errc::kNotFound);
  EXPECT_EQ(map.make_clone(1, "").error().code(), Errc::kInvalid);
  EXPECT_EQ(map.make_clone(1, "c"), 1u);
  EXPECT_EQ(map.make_clone(1, "c").error().code(), Errc::kExists);
  EXPECT_EQ(map.remove(1, freed).error().code(), Errc::kDenied);
  EXPECT_EQ(map.rollback(7, freed).error().code(), Errc::kNotFound);
  EXPECT_EQ(map.drop_clone(2, freed).error().code(), Errc::kNotFound);
}

TEST(VersionMap, RestoresNothingThatMakesNoSense) {
  using Kind = SnapshotRecord::Kind;
  Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    VersionMap map(kLimits);
    for (int j = 0; j < 10; ++j) {
      const SnapshotRecord saved{.kind = static_cast<Kind>(rng.below(8)),
                                 .chunk = static_cast<uint32_t>(rng.below(kChunks + 2)),
                                 .unit = static_cast<uint32_t>(rng.below(4)),
                                 .number = static_cast<uint32_t>(rng.below(4))};
      [[maybe_unused]] const Result<void> done = map.restore(saved, rng.bernoulli(0.5) ? "x" : "");
    }
    VersionMap::Freed freed;
    for (uint64_t chunk = 0; chunk < kChunks; ++chunk) {
      map.find_at(chunk, 1);
      for (const auto& [number, clone] : map.clones()) map.find_in(clone, chunk);
      EXPECT_TRUE(map.set(chunk, 9, freed));
    }
  }
}

}  // namespace
}  // namespace cairn::drive
