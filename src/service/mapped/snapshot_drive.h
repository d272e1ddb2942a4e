// SPDX-License-Identifier: Apache-2.0
// SnapshotDrive: the working parts of snapshot.h, which has the contract. Internal.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "service/common/content_changer.h"
#include "service/mapped/mapped_drive.h"
#include "service/mapped/mapped_format.h"
#include "service/mapped/snapshot_format.h"
#include "service/mapped/units.h"
#include "service/mapped/version_map.h"

namespace cairn::drive {

class SnapshotDrive final : public MappedDrive, public ContentChanger, JournalOwner, MapOwner {
 public:
  SnapshotDrive(env::Env& env, std::vector<std::unique_ptr<Drive>> below, Label label,
                const MappedLayout& layout);

  // Reads the map of a drive that was labelled, or begins a new one.
  task::Task<Result<void>> begin(bool is_new);
  task::Task<void> close() override;
  std::vector<Fact> facts() const override;
  std::vector<Concern> concerns() const override;
  task::Task<std::expected<std::string, std::string>> tell(std::vector<std::string> args) override;
  bool changes_contents(const std::vector<std::string>& args) const override {
    return !args.empty() && args[0] == "rollback";
  }
  Result<std::unique_ptr<Drive>> open_view(std::string_view name) override;

 private:
  friend class VersionView;
  friend class CloneView;
  using Answer = std::expected<std::string, std::string>;

  Result<void> replay(Bytes bytes) override;
  Result<void> check_replayed() const override;
  Result<void> replay_change(const SnapshotRecord& record, std::string_view name,
                             VersionMap::Freed& freed);
  std::optional<uint64_t> save(uint64_t from, JournalRecords& records) const override;
  Journal& map_journal() override { return *journal_; }
  task::Task<Result<void>> reload_map() override;

  Claim* claim() override { return &claim_; }
  std::optional<Place> find(uint64_t chunk) const override { return place(map_.find(chunk)); }
  // A version whose removal may be undone by a crash still counts.
  bool is_own(uint64_t chunk) const override {
    return map_.is_own(chunk) &&
           (journal_->durable() >= removal_ || map_.was_born_after(chunk, removed_));
  }
  Spot spot(Place place) override {
    return {.drive = &below(), .block = units_.block_of(place.unit)};
  }
  task::Task<Result<Place>> allocate(task::CancelToken token) override;
  void forsake(Place place) override;
  void map(uint64_t chunk, Place place, Journal::Needs needs) override;
  void unmap(uint64_t chunk) override;
  task::Task<Result<void>> commit(task::CancelToken token) override;
  task::Task<Result<void>> sync(task::CancelToken token) override;

  static std::optional<Place> place(uint32_t unit) {
    if (unit == VersionMap::kHole) return std::nullopt;
    return Place{.unit = unit - 1};
  }
  // Adds a record whose change was made, and gives up what it freed.
  void record(const SnapshotRecord& record, std::string_view name, Journal::Needs needs,
              const VersionMap::Freed& freed);
  void set_in(uint32_t clone, uint64_t chunk, uint32_t unit, Journal::Needs needs);

  // Commands (snapshot_commands.cc).
  task::Task<Answer> obey(std::vector<std::string> args);
  task::Task<Answer> take(std::string name);
  task::Task<Answer> remove(std::string name);
  task::Task<Answer> make_clone(std::string version, std::string name);
  task::Task<Answer> rollback(std::string name);
  task::Task<Answer> finish(std::string done);
  std::string list() const;
  Result<void> check_unused(uint32_t first, uint32_t last) const;

  Label label_;
  const MappedLayout layout_;
  Claim claim_;
  Units units_;
  VersionMap map_;
  std::unique_ptr<Journal> journal_;
  MapGuard guard_;
  uint32_t saved_to_ = SnapshotRecord::kAll;  // by the checkpoint that is replayed
  uint32_t removed_ = 0;                      // the newest version that was removed...
  uint64_t removal_ = 0;  // ...and the number of the last record that removed one
  std::map<uint32_t, uint32_t> open_versions_;  // how often
  std::map<uint32_t, uint32_t> open_clones_;
};

// A version, as it was.
class VersionView final : public MappedDrive {
 public:
  VersionView(SnapshotDrive& drive, uint32_t version);
  task::Task<void> close() override;

 private:
  std::optional<Place> find(uint64_t chunk) const override {
    return SnapshotDrive::place(drive_.map_.find_at(chunk, version_));
  }
  bool is_own(uint64_t) const override { return false; }
  Spot spot(Place place) override { return drive_.spot(place); }
  task::Task<Result<Place>> allocate(task::CancelToken) override;
  void forsake(Place) override {}
  void map(uint64_t, Place, Journal::Needs) override {}
  void unmap(uint64_t) override {}
  task::Task<Result<void>> commit(task::CancelToken) override;
  task::Task<Result<void>> sync(task::CancelToken) override;
  Result<void> check_change() const override;

  SnapshotDrive& drive_;
  const uint32_t version_;
};

// A clone, which can be written.
class CloneView final : public MappedDrive {
 public:
  CloneView(SnapshotDrive& drive, uint32_t clone);
  task::Task<void> close() override;

 private:
  Claim* claim() override { return drive_.claim(); }
  const VersionMap::Clone& clone() const { return drive_.map_.clones().at(clone_); }
  std::optional<Place> find(uint64_t chunk) const override {
    return SnapshotDrive::place(drive_.map_.find_in(clone(), chunk));
  }
  bool is_own(uint64_t chunk) const override { return drive_.map_.is_own_in(clone(), chunk); }
  Spot spot(Place place) override { return drive_.spot(place); }
  task::Task<Result<Place>> allocate(task::CancelToken token) override {
    return drive_.allocate(token);
  }
  void forsake(Place place) override { drive_.forsake(place); }
  void map(uint64_t chunk, Place place, Journal::Needs needs) override {
    drive_.set_in(clone_, chunk, static_cast<uint32_t>(place.unit + 1), needs);
  }
  bool can_unmap(uint64_t) const override { return drive_.map_.has_room_for_hole(); }
  void unmap(uint64_t chunk) override {
    drive_.set_in(clone_, chunk, VersionMap::kHole, Journal::Needs::kNothing);
  }
  task::Task<Result<void>> commit(task::CancelToken token) override { return drive_.commit(token); }
  task::Task<Result<void>> sync(task::CancelToken token) override { return drive_.sync(token); }

  SnapshotDrive& drive_;
  const uint32_t clone_;
};

}  // namespace cairn::drive
