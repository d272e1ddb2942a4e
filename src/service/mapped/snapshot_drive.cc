// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/snapshot_drive.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "service/common/space_concerns.h"

namespace cairn::drive {

namespace {

// The drive itself takes most of the space, and versions the rest.
constexpr uint64_t kWarnPercent = 90;

VersionMap::Limits limits_of(const MappedLayout& layout) {
  return {.chunks = layout.chunks(),
          .versions = snapshot_versions_max(layout.units),
          .clone_holes = layout.units};
}

}  // namespace

SnapshotDrive::SnapshotDrive(env::Env& env, std::vector<std::unique_ptr<Drive>> below, Label label,
                             const MappedLayout& layout)
    : MappedDrive(env, std::move(below), layout.chunk_blocks),
      label_(std::move(label)),
      layout_(layout),
      claim_(env, this->below(), label_),
      units_(this->below(), layout.place()),
      map_(limits_of(layout)),
      guard_(env, *this, gate()) {
  guard_.add(this->below());
  set_guard(guard_);
  geometry_ = geometry_on(this->below().geometry(), layout.blocks, layout.chunk_blocks);
}

task::Task<Result<void>> SnapshotDrive::begin(bool is_new) {
  guard_.begin();
  const Result<void> started = co_await Journal::start(
      {env(), below(), layout_.journal(), kSnapshotLabel, label_, *this, claim_}, is_new, journal_);
  if (started) units_.reclaim(env(), claim_);
  if (!started || !is_new) co_return started;
  label_.body = encode_layout(layout_);
  co_return co_await finish_label(env(), below(), kSnapshotLabel, label_);
}

task::Task<void> SnapshotDrive::close() {
  co_await gate().close();
  if (journal_ != nullptr) co_await journal_->close();
  co_await units_.close();
  co_await MappedDrive::close();
}

std::vector<Fact> SnapshotDrive::facts() const {
  const Space& space = units_.space();
  uint64_t views = 0;
  for (const auto& [version, times] : open_versions_) views += times;
  for (const auto& [clone, times] : open_clones_) views += times;
  return {{"versions", map_.versions().size()},
          {"clones", map_.clones().size()},
          {"views_open", views},
          {"chunk_bytes", layout_.chunk_blocks * geometry_.block_size},
          {"chunks_below", space.units()},
          {"chunks_used", units_.used()},
          {"chunks_free", space.free()},
          {"chunks_returning", units_.returning()},
          {"chunks_kept_for_versions", map_.kept()}};
}

// Without versions and clones every chunk has its place, or finds one.
std::vector<Concern> SnapshotDrive::concerns() const {
  if (guard_.is_lost()) return guard_.concerns();
  const bool is_alone = map_.versions().empty() && map_.clones().empty();
  return concerns_of(SpaceUse{.used = units_.used(),
                              .units = units_.space().units(),
                              .wanted = is_alone ? layout_.chunks() : UINT64_MAX,
                              .free = units_.space().free() + units_.returning(),
                              .warn_percent = kWarnPercent});
}

// What a record of the journal did, once more.
Result<void> SnapshotDrive::replay_change(const SnapshotRecord& record, std::string_view name,
                                          VersionMap::Freed& freed) {
  switch (record.kind) {
    case SnapshotRecord::kSavedTo:
      saved_to_ = record.chunk;
      return {};
    case SnapshotRecord::kSet:
      return map_.set(record.chunk, record.unit, freed);
    case SnapshotRecord::kSetInClone:
      return map_.set_in(record.number, record.chunk, record.unit, freed);
    case SnapshotRecord::kTake:
      if (const Result<uint32_t> taken = map_.take(name); !taken) return fail(taken.error());
      return {};
    case SnapshotRecord::kRemove:
      return map_.remove(record.number, freed);
    case SnapshotRecord::kRollback:
      return map_.rollback(record.number, freed);
    case SnapshotRecord::kMakeClone:
      if (const Result<uint32_t> made = map_.make_clone(record.number, name); !made) {
        return fail(made.error());
      }
      return {};
    case SnapshotRecord::kDropClone:
      return map_.drop_clone(record.number, freed);
    default:
      return map_.restore(record, name);
  }
}

Result<void> SnapshotDrive::replay(Bytes bytes) {
  const Result<NamedSnapshotRecord> decoded = decode_snapshot_record(bytes);
  if (!decoded) return fail(decoded.error());
  const SnapshotRecord& record = decoded->record;
  const bool is_set =
      record.kind == SnapshotRecord::kSet || record.kind == SnapshotRecord::kSetInClone;
  // What becomes of a chunk depends on what it was: its part of the checkpoint, still to come, has
  // the change in it.
  if (is_set && record.chunk >= saved_to_) return {};
  VersionMap::Freed freed;
  const Result<void> done = replay_change(record, decoded->name, freed);
  if (!done) return fail(Errc::kCorrupt, done.error().what());
  for (const uint32_t unit : freed) {
    if (!units_.space().give(unit - 1)) {
      return fail(Errc::kCorrupt, "the map of versions is damaged");
    }
  }
  // Of a clone or an entry; elsewhere the field is 0 or no unit.
  const bool has_unit = is_set || record.kind == SnapshotRecord::kKept ||
                        record.kind == SnapshotRecord::kNewest ||
                        record.kind == SnapshotRecord::kInClone;
  const bool is_hole = record.unit == VersionMap::kHole || record.unit == VersionMap::kCloneHole;
  return has_unit && !is_hole ? units_.space().claim(record.unit - 1) : Result<void>();
}

// Positions are chunks, counted from 1, behind the versions and clones.
std::optional<uint64_t> SnapshotDrive::save(uint64_t from, JournalRecords& records) const {
  const auto add = [&](const SnapshotRecord& record, std::string_view name) {
    if (name.empty()) {
      records.add(record);
    } else {
      records.add(Bytes(encode_snapshot_record(record, name)));
    }
  };
  uint64_t next = 0;
  if (from == 0) {
    map_.save_versions(add);
  } else {
    next = map_.save_chunks(from - 1, add);
  }
  const bool is_all = next == map_.chunks();
  const uint32_t saved_to = is_all ? SnapshotRecord::kAll : static_cast<uint32_t>(next);
  records.add(SnapshotRecord{.kind = SnapshotRecord::kSavedTo, .chunk = saved_to});
  return is_all ? std::nullopt : std::optional(next + 1);
}

Result<void> SnapshotDrive::check_replayed() const {
  if (saved_to_ == SnapshotRecord::kAll) return {};
  return fail(Errc::kCorrupt, "the map of versions has an end too soon");
}

task::Task<Result<void>> SnapshotDrive::reload_map() {
  co_await units_.restart();
  map_ = VersionMap(limits_of(layout_));
  saved_to_ = SnapshotRecord::kAll;
  removed_ = 0;
  removal_ = 0;
  Result<void> done = co_await journal_->reload();
  if (!done) co_return done;
  const auto lacks = [](const auto& open, const auto& all) {
    return std::ranges::any_of(open, [&](const auto& one) { return !all.contains(one.first); });
  };
  if (lacks(open_versions_, map_.versions()) || lacks(open_clones_, map_.clones())) {
    co_return fail(Errc::kIo, "a version or clone in use was lost before it was durable: close it");
  }
  co_return done;
}

task::Task<Result<MappedDrive::Place>> SnapshotDrive::allocate(task::CancelToken token) {
  const Result<uint64_t> unit = co_await units_.take(*journal_, token);
  if (!unit) co_return fail(unit.error());
  co_return Place{.unit = *unit};
}

void SnapshotDrive::forsake(Place place) {
  const Result<void> given = units_.space().give(place.unit);
  CHECK(given.has_value());
}

void SnapshotDrive::record(const SnapshotRecord& record, std::string_view name,
                           Journal::Needs needs, const VersionMap::Freed& freed) {
  const uint64_t number = name.empty()
                              ? journal_->add(record, needs)
                              : journal_->add(Bytes(encode_snapshot_record(record, name)), needs);
  for (const uint32_t unit : freed) {
    const Result<void> given = units_.space().give_after(unit - 1, number);
    CHECK(given.has_value());
  }
}

void SnapshotDrive::map(uint64_t chunk, Place place, Journal::Needs needs) {
  const auto unit = static_cast<uint32_t>(place.unit + 1);
  VersionMap::Freed freed;
  const Result<void> done = map_.set(chunk, unit, freed);
  CHECK(done.has_value());
  record({.kind = SnapshotRecord::kSet, .chunk = static_cast<uint32_t>(chunk), .unit = unit}, "",
         needs, freed);
}

void SnapshotDrive::unmap(uint64_t chunk) {
  VersionMap::Freed freed;
  const Result<void> done = map_.set(chunk, VersionMap::kHole, freed);
  CHECK(done.has_value());
  record({.kind = SnapshotRecord::kSet, .chunk = static_cast<uint32_t>(chunk)}, "",
         Journal::Needs::kNothing, freed);
}

void SnapshotDrive::set_in(uint32_t clone, uint64_t chunk, uint32_t unit, Journal::Needs needs) {
  VersionMap::Freed freed;
  const Result<void> done = map_.set_in(clone, chunk, unit, freed);
  CHECK(done.has_value());
  record({.kind = SnapshotRecord::kSetInClone,
          .chunk = static_cast<uint32_t>(chunk),
          .unit = unit,
          .number = clone},
         "", needs, freed);
}

task::Task<Result<void>> SnapshotDrive::commit(task::CancelToken token) {
  Result<void> done = co_await journal_->commit(token);
  units_.return_some(*journal_);
  co_return done;
}

task::Task<Result<void>> SnapshotDrive::sync(task::CancelToken token) {
  Result<void> done = co_await journal_->sync(token);
  units_.return_some(*journal_);
  co_return done;
}

Result<std::unique_ptr<Drive>> SnapshotDrive::open_view(std::string_view name) {
  if (!guard_.is_sound()) {
    return fail(Errc::kIo,
                "the drive below lost writes that were not flushed: read it, then retry");
  }
  constexpr std::string_view kClone = "clone:";
  if (!name.starts_with(kClone)) {
    const Result<uint32_t> version = map_.version(name);
    if (!version) return fail(version.error());
    return std::make_unique<VersionView>(*this, *version);
  }
  const Result<uint32_t> clone = map_.clone(name.substr(kClone.size()));
  if (!clone) return fail(clone.error());
  if (open_clones_.contains(*clone)) {
    return fail(Errc::kExists, "the clone is open already: it has one user at a time");
  }
  return std::make_unique<CloneView>(*this, *clone);
}

VersionView::VersionView(SnapshotDrive& drive, uint32_t version)
    : MappedDrive(drive.env(), {}, drive.chunk_blocks()), drive_(drive), version_(version) {
  geometry_ = drive.geometry();
  set_guard(drive_.guard_);
  ++drive_.open_versions_[version];
}

task::Task<void> VersionView::close() {
  co_await MappedDrive::close();
  if (--drive_.open_versions_[version_] == 0) drive_.open_versions_.erase(version_);
}

Result<void> VersionView::check_change() const {
  return fail(Errc::kDenied, "a version cannot be written: make a clone of it");
}
task::Task<Result<MappedDrive::Place>> VersionView::allocate(task::CancelToken) {
  co_return fail(check_change().error());
}
// All of a version is durable since it was taken.
task::Task<Result<void>> VersionView::commit(task::CancelToken) { co_return Result<void>(); }
task::Task<Result<void>> VersionView::sync(task::CancelToken) { co_return Result<void>(); }

CloneView::CloneView(SnapshotDrive& drive, uint32_t clone)
    : MappedDrive(drive.env(), {}, drive.chunk_blocks()), drive_(drive), clone_(clone) {
  geometry_ = drive.geometry();
  set_guard(drive_.guard_);
  ++drive_.open_clones_[clone];
}

task::Task<void> CloneView::close() {
  co_await MappedDrive::close();
  [[maybe_unused]] const Result<void> done = co_await drive_.journal_->commit();
  drive_.open_clones_.erase(clone_);
}

}  // namespace cairn::drive
