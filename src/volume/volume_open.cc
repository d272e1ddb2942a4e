// SPDX-License-Identifier: Apache-2.0
// A volume is opened, with what its last holder left, and given back.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/medium_id.h"
#include "task/deadline.h"
#include "volume/volume_drive.h"

namespace cairn::volume {

using drive::RegionSet;
using task::CancelToken;
using task::Task;

namespace {

constexpr uint32_t kTransferBlocks = 256;
constexpr Duration kCallLimit = 5_s;

}  // namespace

VolumeDrive::VolumeDrive(env::Env& env, ArbiterLink& link, MegaVolSource& source,
                         VolumeOptions options, Opened opened, Time sent)
    : env_(env),
      link_(link),
      options_(std::move(options)),
      pool_(opened.pool),
      extent_blocks_(opened.pool.extent_bytes / kBlockBytes),
      opened_(std::move(opened)),
      replicas_(opened_.replicas),
      promised_extents_(opened_.extents),
      opening_(env.rng().next() | 1),
      lease_(std::make_unique<Lease>(env, link_, opened_.session, opened_.lease, sent,
                                     [this](const Renewed& answer) { renewed(answer); })),
      members_(env, source, *this, options_.client, opened_.pool, options_.retry),
      allocator_(env, link_, *lease_, table_, options_.allocator),
      log_(env, *this),
      reporter_({env, link_, *lease_, table_, closing_, gate_}, options_.allocator.retry,
                [this] { return usable(); }),
      sweeper_({env, *this, *lease_, closing_, gate_}, options_.sweep),
      copy_on_write_(
          {env, *this, link_, *lease_, table_, members_, ranges_, changing_, closing_, gate_},
          extent_blocks_, options_.allocator.retry),
      pace_(env, options_.rebuild_rate) {
  geometry_.block_size = kBlockBytes;
  geometry_.discard_blocks = static_cast<uint32_t>(extent_blocks_);
  geometry_.transfer_blocks = kTransferBlocks;
  geometry_.copies = static_cast<uint8_t>(replicas_);
  set_extents(opened_.extents);
}

VolumeDrive::~VolumeDrive() = default;

Task<Result<std::unique_ptr<VolumeDrive>>> VolumeDrive::open(env::Env& env, ArbiterLink& link,
                                                             MegaVolSource& source,
                                                             std::string volume,
                                                             VolumeOptions options,
                                                             CancelToken token) {
  task::Deadline deadline(env, env.now() + options.open_limit, token);
  const Time sent = env.now();
  const Result<Opened> opened = co_await link.open(
      {.volume = std::move(volume), .client = options.client, .take_over = options.take_over},
      deadline.token());
  if (!opened) co_return fail(opened.error());
  auto drive = std::make_unique<VolumeDrive>(env, link, source, std::move(options), *opened, sent);
  const Result<void> begun = co_await drive->begin(deadline.token());
  if (begun) co_return drive;
  // What the holder before left stays for the next one to make equal.
  co_await drive->close();
  co_return fail(begun.error());
}

void VolumeDrive::set_extents(uint32_t extents) {
  RegionSet unequal(extents);
  RegionSet to_heal(extents);
  for (size_t i = unequal_.next(0); i < unequal_.size(); i = unequal_.next(i + 1)) unequal.add(i);
  for (size_t i = heal_.next(0); i < heal_.size(); i = heal_.next(i + 1)) to_heal.add(i);
  unequal_ = std::move(unequal);
  heal_ = std::move(to_heal);
  table_.resize(extents);
  geometry_.blocks = (extents - kFirstDataExtent) * extent_blocks_;
}

Task<Result<void>> VolumeDrive::begin(CancelToken token) {
  members_.set(opened_.mega_vols, opened_.unfenced);
  const Result<void> loaded = co_await load_table(token);
  if (!loaded) co_return loaded;
  co_await members_.wait_until_tried(options_.open_limit / 2);
  // What the last holder wrote may be unflushed, and is flushed before its marks go.
  for (const auto& [id, member] : members_.all()) member->is_dirty = !opened_.is_clean;
  bool has_copies = replicas_ > 1;
  for (uint32_t i = 0; i < table_.extents(); ++i) has_copies |= table_[i].size() > 1;
  if (has_copies) {
    const Result<void> known = co_await load_intents(token);
    if (!known) co_return known;
  }
  is_begun_ = true;
  if (!opened_.is_snapshot) gate_.spawn(attend());
  find_work();
  co_return usable();
}

Task<Result<void>> VolumeDrive::load_table(CancelToken token) {
  for (uint32_t first = 0; first < table_.extents();) {
    const Result<std::vector<Mapping>> page = co_await link_.table(session(), first, token);
    if (!page) co_return fail(page.error());
    if (page->empty()) co_return fail(Errc::kCorrupt, "the arbiter's map of the volume is short");
    for (const Mapping& mapping : *page) table_.apply(mapping);
    first = page->back().extent + 1;
  }
  co_return Result<void>();
}

Task<Result<void>> VolumeDrive::load_intents(CancelToken token) {
  std::optional<IntentRecord> newest;
  if (table_[kLogExtent].is_mapped()) {
    if (!opened_.is_clean) {
      Result<std::optional<IntentRecord>> found = co_await newest_intents(token);
      if (!found) co_return fail(found.error());
      newest = std::move(*found);
    }
  } else {
    const Result<void> mapped = co_await allocator_.map(kLogExtent, token);
    if (!mapped) co_return mapped;
  }
  region_extents_ = region_extents_for(table_.extents());
  RegionSet marks(kIntentRegionsMax);
  if (newest) note_marks(*newest, marks);
  const Result<void> begun =
      log_.begin(opened_.session.volume, opened_.session.epoch, region_extents_, marks);
  if (!begun) co_return begun;
  const Result<void> saved = co_await log_.save_marks(marks, true);
  if (!saved) co_return saved;
  intents_ = std::make_unique<drive::WriteIntent>(log_, marks);
  if (!marks.empty()) sweeper_.start();
  co_return saved;
}

// From every leg of the log that can be read and is not stale; one of them has the newest. None:
// nothing was ever marked.
Task<Result<std::optional<IntentRecord>>> VolumeDrive::newest_intents(CancelToken token) {
  const MapEntry entry = table_[kLogExtent];
  Result<drive::Scratch> memory = drive::Scratch::make(env_, kIntentRecords * kIntentBytes);
  if (!memory) co_return fail(memory.error());
  std::optional<IntentRecord> newest;
  bool is_read = false;
  for (size_t i = 0; i < entry.size(); ++i) {
    Member* member = members_.find(entry.leg(i).mega_vol);
    if (entry.leg(i).is_stale || member == nullptr || !member->is_good()) continue;
    const MutableBytes bytes = memory->bytes();
    const Part part{.extent = kLogExtent, .blocks = kIntentRecords};
    const Result<void> read = co_await run_on(*member, entry.leg(i), part, {}, {&bytes, 1}, token);
    if (!read || !member->is_good()) continue;
    is_read = true;
    for (uint64_t slot = 0; slot < kIntentRecords; ++slot) {
      Result<std::optional<IntentRecord>> record =
          decode_intents(bytes.subspan(slot * kIntentBytes, kIntentBytes), opened_.session.volume);
      // A torn record was never counted on; one of another version must not be ignored.
      if (!record && record.error() == Errc::kUnsupported) co_return fail(record.error());
      if (!record || !*record) continue;
      if (!newest || is_newer(**record, *newest)) newest = std::move(**record);
    }
  }
  if (is_read) co_return newest;
  co_return fail(Errc::kUnreachable, "no drive with the volume's log of write intents answers");
}

// Extents that may be half written, in regions of this opening.
void VolumeDrive::note_marks(const IntentRecord& record, RegionSet& marks) {
  for (size_t region = record.marks.next(0); region < record.marks.size();
       region = record.marks.next(region + 1)) {
    const uint64_t first = region * record.region_extents;
    const uint64_t end = std::min<uint64_t>(first + record.region_extents, table_.extents());
    for (uint64_t extent = first; extent < end; ++extent) {
      marks.add(region_of(static_cast<uint32_t>(extent)));
      if (extent != kLogExtent && table_[static_cast<uint32_t>(extent)].in_sync() > 1) {
        must_equalize(static_cast<uint32_t>(extent));
      }
    }
  }
}

void VolumeDrive::renewed(const Renewed& answer) {
  promised_extents_ = answer.extents;
  replicas_ = answer.replicas;
  bool is_changed = members_.set(answer.mega_vols, answer.unfenced);
  // One that has been away for long enough counts as lost from then on.
  for (const auto& [id, member] : members_.all()) is_changed |= is_lost(member.get());
  if (is_changed && is_begun_) find_work();
}

Task<Result<void>> VolumeDrive::resize(uint64_t blocks) {
  const Result<Renewed> now = co_await link_.renew(session(), closing_.token());
  if (!now) co_return fail(now.error());
  renewed(*now);
  const uint64_t promised = (promised_extents_ - kFirstDataExtent) * extent_blocks_;
  if (blocks == geometry_.blocks) co_return Result<void>();
  if (blocks != promised || blocks < geometry_.blocks) {
    co_return fail(Errc::kInvalid, "the size of a volume is what the arbiter has promised");
  }
  if (region_extents_for(promised_extents_) > region_extents_ && intents_ != nullptr) {
    co_return fail(Errc::kUnsupported, "so much larger it has to be opened again");
  }
  set_extents(promised_extents_);
  co_return Result<void>();
}

Task<void> VolumeDrive::close() {
  co_await requests_.close();
  // What is under way in the background ends soon; a flush and reports come before that.
  bool is_clean = false;
  if (lease_->is_held()) is_clean = co_await give_back();
  closing_.request();
  co_await allocator_.close();
  co_await gate_.close();
  co_await lease_->close();
  if (lease_->is_held()) {
    task::Deadline deadline(env_, env_.now() + kCallLimit);
    [[maybe_unused]] const Result<void> closed =
        co_await link_.close(session(), is_clean, deadline.token());
  }
  co_await members_.close();
  if (ground_ != nullptr) co_await ground_->close();
}

// True: every leg that is not stale has everything, durably, and no flush has a loss to tell of
// yet. Else the next one reads the log. Who could not begin has not read it, and knows no more of
// the legs than it was told.
Task<bool> VolumeDrive::give_back() {
  task::Deadline deadline(env_, env_.now() + kCallLimit);
  const Result<void> flushed = co_await flush_members(deadline.token());
  if (!flushed) co_return false;
  const Result<void> known = co_await reporter_.known(deadline.token());
  if (!known || !unequal_.empty() || reporter_.is_settling()) co_return false;
  co_return losses_.count() == losses_.told() && (is_begun_ || opened_.is_clean);
}

}  // namespace cairn::volume
