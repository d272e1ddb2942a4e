// SPDX-License-Identifier: Apache-2.0
// Copying: a stale leg gets what it lacks while I/O goes on, and legs that may differ are made
// equal before anybody reads them.
#include <algorithm>
#include <array>
#include <utility>

#include "drive/copy_blocks.h"
#include "task/deadline.h"
#include "volume/volume_drive.h"

namespace cairn::volume {

using drive::Ranges;
using task::CancelToken;
using task::Task;

namespace {

constexpr uint64_t kWindowBlocks = 64;  // held at a time, while I/O to them waits
constexpr uint64_t kCopiers = 8;        // windows of one extent at a time
constexpr Duration kCallLimit = 5_s;

}  // namespace

// From here on every write goes to the leg too, and window after window is copied. Then it is
// flushed, and the arbiter is told.
Task<VolumeDrive::Step> VolumeDrive::resync(uint32_t extent, Leg leg) {
  Member& member = *members_.find(leg.mega_vol);
  const uint64_t losses = member.losses;
  copying_ = Copying{.extent = extent, .mega_vol = leg.mega_vol};
  Result<void> copied;
  if (extent == kLogExtent) {
    copied = co_await log_.rewrite();
  } else {
    copied = co_await copy_all(extent, leg, member);
  }
  if (copied && !copying_->has_failed && member.drive != nullptr) {
    copied = co_await member.drive->flush(closing_.token());
    members_.look(member);
    if (!copied && !closing_.requested()) {
      members_.blame(member, copied.error());
      members_.note_loss(member);
    }
  }
  bool is_done = false;
  if (copied && !copying_->has_failed) {
    is_done = co_await finish_resync(extent, leg, member, losses);
  }
  copying_.reset();
  if (is_done) ++counters_.resynced;
  co_return is_done ? Step::kMore : Step::kWait;
}

bool VolumeDrive::has_leg(uint32_t extent, const Leg& leg) const {
  const MapEntry& entry = table_[extent];
  const size_t index = entry.find(leg.mega_vol);
  return index < entry.size() && entry.leg(index).extent == leg.extent;
}

// What those share who copy an extent side by side.
struct VolumeDrive::CopyWindows {
  uint32_t extent;
  Leg to;
  Member& member;
  uint64_t next = 0;    // the first block that nobody copies yet
  Result<void> failed;  // by the first that did: the others end
};

Task<Result<void>> VolumeDrive::copy_all(uint32_t extent, Leg to, Member& member) {
  CopyWindows windows{.extent = extent, .to = to, .member = member, .failed = {}};
  drive::Join join;
  // While somebody uses the volume one window after the other: they would wait for all of them.
  const bool is_used = std::exchange(was_used_, false) || requests_.count() > 0;
  const uint64_t copiers = is_used ? 1 : kCopiers;
  for (uint64_t i = 0; i < copiers; ++i) {
    join.add();
    gate_.spawn(copy_some(windows, join));
  }
  co_return co_await join.all();
}

Task<void> VolumeDrive::copy_some(CopyWindows& windows, drive::Join& join) {
  Result<drive::Scratch> memory = drive::Scratch::make(env_, kWindowBlocks * kBlockBytes);
  if (!memory) windows.failed = fail(memory.error());
  while (windows.failed && windows.next < extent_blocks_) {
    const uint64_t at = windows.next;
    windows.next += kWindowBlocks;
    const MutableBytes bytes =
        memory->first(std::min(kWindowBlocks, extent_blocks_ - at) * kBlockBytes);
    const Result<void> done = co_await copy_window(windows, at, bytes);
    if (!done) windows.failed = done;
  }
  join.finish(windows.failed);
}

Task<Result<void>> VolumeDrive::copy_window(const CopyWindows& windows, uint64_t at,
                                            MutableBytes memory) {
  const uint32_t extent = windows.extent;
  const Part part{.extent = extent, .offset = at, .blocks = memory.size() / kBlockBytes};
  Result<void> done = co_await pace_.take(memory.size(), closing_.token());
  if (!done) co_return done;
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, first_block(extent) + at, part.blocks,
                    closing_.token());
  done = co_await hold;
  if (!done) co_return done;
  if (const Result<void> still = usable(); !still) co_return still;
  // Whoever discarded the extent meanwhile gave the leg to others.
  if (!has_leg(extent, windows.to))
    co_return fail(Errc::kNotFound, "the leg is not there any more");
  const Request reading{.priority = drive::Priority::kLow};
  done = co_await read_part(part, reading, {&memory, 1}, closing_.token());
  if (!done) co_return done;
  if (copying_->has_failed) co_return fail(Errc::kIo, "the leg that is copied to failed");
  Member& member = windows.member;
  const drive::Geometry& shape = member.drive->geometry();
  const uint64_t scale = kBlockBytes / shape.block_size;
  const Request request{.kind = Request::Kind::kWrite,
                        .priority = drive::Priority::kLow,
                        .lba = Lba((windows.to.extent * extent_blocks_ + at) * scale),
                        .blocks = part.blocks * scale};
  done = co_await drive::write_copy(*member.drive, request, memory, closing_.token());
  member.is_dirty = true;
  members_.look(member);
  if (!done && !closing_.requested()) members_.blame(member, done.error());
  co_return done;
}

// Until the arbiter has answered it may take the leg for good although a write to it failed since:
// flushes wait for that, and the leg gets every write meanwhile.
Task<bool> VolumeDrive::finish_resync(uint32_t extent, Leg leg, Member& member, uint64_t losses) {
  // What a leg is exchanged for is given to others in the same commit: nothing may be on its way.
  const std::optional<MegaVolId> drop = surplus(extent, leg.mega_vol);
  const bool is_alone = drop && extent != kLogExtent;
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, is_alone ? first_block(extent) : 0,
                    is_alone ? extent_blocks_ : 0, closing_.token());
  const Result<void> held = co_await hold;
  if (!held || !has_leg(extent, leg)) co_return false;
  reporter_.settle();
  bool is_good = false;
  bool is_only = false;
  while (lease_->is_held() && !closing_.requested()) {
    is_good = !copying_->has_failed && member.losses == losses;
    task::Deadline deadline(env_, env_.now() + kCallLimit, closing_.token());
    Result<void> told;
    if (is_good && is_alone) {
      const Result<Mapping> moved = co_await link_.relocate(
          session(), {.extent = extent, .synced = leg.mega_vol, .drop = drop}, deadline.token());
      if (moved) table_.apply(*moved);
      told = moved ? Result<void>() : fail(moved.error());
    } else {
      const Result<std::vector<Mapping>> reported = co_await link_.report(
          session(), {{.extent = extent, .mega_vol = leg.mega_vol, .is_stale = !is_good}},
          deadline.token());
      if (reported) table_.apply(reported->front());
      told = reported ? Result<void>() : fail(reported.error());
    }
    if (told) break;
    note_answer(told.error());
    // What it was exchanged for is gone already, by a call whose answer was lost.
    is_only = told.error() == Errc::kInvalid;
    if (is_only) break;
    is_good = false;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, options_.allocator.retry, closing_.token());
  }
  if (is_only) {
    const Result<void> known = co_await learn(extent);
    is_good = known.has_value();
  }
  // A write that failed after the arbiter was asked.
  if (is_good && (copying_->has_failed || member.losses != losses)) {
    if (has_other(extent, leg.mega_vol)) {
      distrust(extent, leg.mega_vol);
      is_good = false;
    } else {
      losses_.add();
    }
  }
  reporter_.settled(!closing_.requested());
  co_return is_good;
}

Task<Result<void>> VolumeDrive::equalize(uint32_t extent, CancelToken token) {
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, first_block(extent), extent_blocks_, token);
  Result<void> done = co_await hold;
  if (!done || !unequal_.has(extent)) co_return done;
  std::array<drive::Scratch, kReplicasMax> memory;
  for (drive::Scratch& each : memory) {
    Result<drive::Scratch> made = drive::Scratch::make(env_, kWindowBlocks * kBlockBytes);
    if (!made) co_return fail(made.error());
    each = std::move(*made);
  }
  const drive::Regions region{.first = region_of(extent), .count = 1};
  done = co_await intents_->enter(region);
  sweeper_.start();
  bool has_differed = false;
  for (uint64_t at = 0; done && at < extent_blocks_; at += kWindowBlocks) {
    const Part part{
        .extent = extent, .offset = at, .blocks = std::min(kWindowBlocks, extent_blocks_ - at)};
    done = usable();
    if (!done) break;
    const Result<bool> equal = co_await equalize_window(part, memory, token);
    if (!equal) done = fail(equal.error());
    if (equal) has_differed |= !*equal;
  }
  intents_->leave(region);
  if (!done) co_return done;
  unequal_.remove(extent);
  ++counters_.equalized;
  counters_.mended += has_differed ? 1 : 0;
  co_return done;
}

// True: the legs were equal. Each that has all writes is read; the head is right, unless two others
// agree against it.
Task<Result<bool>> VolumeDrive::equalize_window(Part part, std::span<drive::Scratch> memory,
                                                CancelToken token) {
  const MapEntry entry = table_[part.extent];
  std::array<size_t, kReplicasMax> legs{};
  size_t count = 0;
  Result<void> failure = fail(Errc::kUnreachable, "no drive with the extent answers");
  for (size_t i = 0; i < entry.size(); ++i) {
    const Leg leg = entry.leg(i);
    Member* member = members_.find(leg.mega_vol);
    if (!table_.is_trusted(part.extent, leg.mega_vol)) continue;
    if (member != nullptr && member->is_good()) {
      const MutableBytes bytes = memory[count].first(part.blocks * kBlockBytes);
      const Result<void> read = co_await run_on(*member, leg, part, {}, {&bytes, 1}, token);
      if (!read) failure = read;
      if (read && table_.is_trusted(part.extent, leg.mega_vol)) legs[count++] = i;
    }
    if (token.requested()) co_return fail(token.error());
  }
  if (count == 0) co_return fail(failure.error());
  const auto bytes_of = [&](size_t index) {
    return memory[index].first(part.blocks * kBlockBytes);
  };
  const bool has_majority = count == 3 && !std::ranges::equal(bytes_of(0), bytes_of(1)) &&
                            std::ranges::equal(bytes_of(1), bytes_of(2));
  const MutableBytes right = bytes_of(has_majority ? 1 : 0);
  bool is_equal = true;
  for (size_t i = 0; i < count; ++i) {
    if (std::ranges::equal(bytes_of(i), right)) continue;
    is_equal = false;
    const Leg leg = entry.leg(legs[i]);
    const Request request{.kind = Request::Kind::kWrite};
    const Result<void> written =
        co_await run_on(*members_.find(leg.mega_vol), leg, part, request, {&right, 1}, token);
    if (token.requested()) co_return fail(token.error());
    if (!written) distrust(part.extent, leg.mega_vol);
  }
  // Those that did not answer are not equal to anything.
  for (size_t i = 0; i < entry.size(); ++i) {
    const Leg leg = entry.leg(i);
    const bool was_read = std::ranges::find(legs.begin(), legs.begin() + count, i) !=
                          legs.begin() + static_cast<ptrdiff_t>(count);
    if (!was_read && table_.is_trusted(part.extent, leg.mega_vol))
      distrust(part.extent, leg.mega_vol);
  }
  co_return is_equal;
}

Task<Result<uint64_t>> VolumeDrive::scrub() {
  const uint64_t before = counters_.mended;
  for (uint32_t extent = kFirstDataExtent; extent < table_.extents() && intents_ != nullptr;
       ++extent) {
    if (closing_.requested()) co_return fail(Errc::kClosed, "the volume is being closed");
    if (table_.trusted(extent) < 2) continue;
    const Result<void> paced =
        co_await pace_.take(pool_.extent_bytes * table_.trusted(extent), closing_.token());
    if (!paced) co_return fail(paced.error());
    unequal_.add(extent);
    const Result<void> equal = co_await equalize(extent, closing_.token());
    if (!equal) co_return fail(equal.error());
  }
  co_return counters_.mended - before;
}

}  // namespace cairn::volume
