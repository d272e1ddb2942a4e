// SPDX-License-Identifier: Apache-2.0
// What becomes of a part of a request on the legs of its extent, and flushes of drives.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "drive/copy_blocks.h"
#include "drive/pieces.h"
#include "task/deadline.h"
#include "volume/volume_drive.h"

namespace cairn::volume {

using task::CancelToken;
using task::Task;

namespace {

constexpr Error kNoLeg{Errc::kUnreachable, "no drive with the extent answers"};
constexpr Error kLostMeanwhile{Errc::kIo, "the drive that answered was lost meanwhile"};
constexpr Duration kCallLimit = 5_s;

void clear_memory(std::span<const MutableBytes> memory) {
  for (const MutableBytes piece : memory) std::ranges::fill(piece, std::byte{0});
}

}  // namespace

// The leg that is read: of those that have all writes the one with the least to do, and the tail
// among equals.
size_t VolumeDrive::pick(uint32_t extent, const std::array<bool, kReplicasMax>& tried) const {
  const MapEntry& entry = table_[extent];
  size_t best = entry.size();
  uint32_t best_reads = 0;
  for (size_t i = entry.size(); i-- > 0;) {
    const Leg leg = entry.leg(i);
    const Member* member = members_.find(leg.mega_vol);
    if (tried[i] || member == nullptr || member->drive == nullptr ||
        !table_.is_trusted(extent, leg.mega_vol)) {
      continue;
    }
    // The only leg is asked even if it was away: nobody else can answer.
    if (!member->is_good() && entry.size() > 1) continue;
    if (member->state == Member::State::kGone) continue;
    if (best == entry.size() || member->reads < best_reads) {
      best = i;
      best_reads = member->reads;
    }
  }
  return best;
}

Task<Result<void>> VolumeDrive::read_part(Part part, Request request, Memory memory,
                                          CancelToken token) {
  if (!table_[part.extent].is_mapped()) {
    clear_memory(memory);
    co_return Result<void>();
  }
  if (pick(part.extent, {}) == table_[part.extent].size()) {
    const Result<void> met = co_await meet_members(table_[part.extent], token);
    if (!met) co_return met;
  }
  request.kind = Request::Kind::kRead;
  const size_t copy = std::exchange(request.copy, 0);
  std::array<bool, kReplicasMax> tried{};
  for (size_t i = 0; copy > 0 && i < tried.size(); ++i) tried[i] = i != copy - 1;
  Result<void> done = fail(kNoLeg);
  std::vector<MegaVolId> unreadable;
  for (;;) {
    const size_t index = pick(part.extent, tried);
    if (index == table_[part.extent].size()) co_return done;
    const Leg leg = table_[part.extent].leg(index);
    Member& member = *members_.find(leg.mega_vol);
    ++member.reads;
    done = co_await run_on(member, leg, part, request, memory, token);
    --member.reads;
    const bool is_only = table_[part.extent].size() == 1;
    if (done && (is_only || table_.is_trusted(part.extent, leg.mega_vol))) {
      // What others could not read is copied to them from here.
      for (const MegaVolId each : unreadable) {
        if (has_other(part.extent, each)) distrust(part.extent, each);
      }
      co_return done;
    }
    if (done) done = fail(kLostMeanwhile);
    if (token.requested()) co_return done;
    tried[index] = true;
    if (done.error() == Errc::kIo) unreadable.push_back(leg.mega_vol);
  }
}

// One request to one drive, in as many pieces as it takes at a time.
Task<Result<void>> VolumeDrive::run_on(Member& member, const Leg& leg, Part part, Request request,
                                       Memory memory, CancelToken token) {
  if (member.drive == nullptr) co_return fail(kNoLeg);
  drive::Drive& drive = *member.drive;
  const drive::Geometry& shape = drive.geometry();
  const uint64_t scale = kBlockBytes / shape.block_size;
  const uint64_t first = (leg.extent * extent_blocks_ + part.offset) * scale;
  const uint64_t count = part.blocks * scale;
  request.copy = 0;
  Result<void> done;
  if (request.kind == Request::Kind::kWriteZeroes) {
    request.lba = Lba(first);
    request.blocks = count;
    done = co_await drive::write_holes(env_, drive, request, token);
  } else if (count <= shape.transfer_blocks) {
    request.lba = Lba(first);
    request.blocks = count;
    done = co_await drive.submit(request, memory, {}, token);
  } else {
    for (uint64_t at = 0; at < count && done; at += shape.transfer_blocks) {
      request.lba = Lba(first + at);
      request.blocks = std::min<uint64_t>(shape.transfer_blocks, count - at);
      drive::Pieces pieces;
      pieces.add(memory, at * shape.block_size, request.blocks * shape.block_size);
      done = co_await drive.submit(request, pieces.all(), {}, token);
    }
  }
  if (request.writes()) member.is_dirty = true;
  members_.look(member);
  if (!done && !token.requested()) members_.blame(member, done.error());
  co_return done;
}

Task<Result<void>> VolumeDrive::write_part(Part part, Request request, Memory memory,
                                           CancelToken token) {
  if (!table_[part.extent].is_mapped()) {
    // It reads as zeroes already. What others write has got its place before it was held.
    CHECK(request.kind == Request::Kind::kWriteZeroes);
    co_return Result<void>();
  }
  CHECK(!table_.is_shared(part.extent));
  const Result<void> met = co_await meet_members(table_[part.extent], token);
  if (!met) co_return met;
  if (intents_ == nullptr) co_return co_await write_chain(part, request, memory, token);
  const drive::Regions region{.first = region_of(part.extent), .count = 1};
  Result<void> done = co_await intents_->enter(region);
  sweeper_.start();
  if (done && token.requested()) done = fail(token.error());
  if (done) done = usable();
  if (done) done = co_await write_chain(part, request, memory, token);
  intents_->leave(region);
  co_return done;
}

bool VolumeDrive::has_new_members(MapEntry entry) const {
  for (size_t i = 0; i < entry.size(); ++i) {
    const Member* member = members_.find(entry.leg(i).mega_vol);
    if (member == nullptr || member->state == Member::State::kOpening) return true;
  }
  return false;
}

// The pool may have got drives since the lease was renewed: the extent is the first on one of them.
Task<Result<void>> VolumeDrive::meet_members(MapEntry entry, CancelToken token) {
  if (!has_new_members(entry)) co_return Result<void>();
  bool is_unknown = false;
  for (size_t i = 0; i < entry.size(); ++i) {
    is_unknown |= members_.find(entry.leg(i).mega_vol) == nullptr;
  }
  if (is_unknown) {
    task::Deadline deadline(env_, env_.now() + options_.open_limit, token);
    const Result<void> known = co_await lease_->confirm(deadline.token());
    if (!known) co_return known;
  }
  // Those that do not answer in that time are away, as any other may be.
  co_await members_.wait_until_tried(options_.open_limit / 2);
  co_return Result<void>();
}

// Head to tail. A leg that fails is not asked for anything of this extent until it was copied to.
Task<Result<void>> VolumeDrive::write_chain(Part part, Request request, Memory memory,
                                            CancelToken token) {
  const MapEntry entry = table_[part.extent];
  std::array<bool, kReplicasMax> lacks{};
  std::array<bool, kReplicasMax> has{};
  Result<void> first_failure;
  for (size_t i = 0; i < entry.size(); ++i) {
    const Leg leg = entry.leg(i);
    const auto is_target = [&] {
      return copying_ && copying_->extent == part.extent && copying_->mega_vol == leg.mega_vol;
    };
    if (!table_.is_trusted(part.extent, leg.mega_vol) && !is_target()) continue;
    Member* member = members_.find(leg.mega_vol);
    Result<void> done = fail(kNoLeg);
    if (member != nullptr && (member->is_good() || entry.size() == 1)) {
      done = co_await run_on(*member, leg, part, request, memory, token);
    }
    has[i] = done.has_value();
    if (done) continue;
    lacks[i] = true;
    if (is_target()) copying_->has_failed = true;
    if (first_failure) first_failure = done;
  }
  // One that has it may have been lost while the others were written.
  bool has_one = false;
  for (size_t i = 0; i < entry.size(); ++i) {
    has_one |= has[i] && table_.is_trusted(part.extent, entry.leg(i).mega_vol);
  }
  if (!has_one || (!first_failure && token.requested())) {
    // Any of them may have it: the next who looks makes them equal.
    if (table_.trusted(part.extent) > 1) must_equalize(part.extent);
    co_return first_failure ? fail(kLostMeanwhile) : first_failure;
  }
  for (size_t i = 0; i < entry.size(); ++i) {
    if (lacks[i]) distrust(part.extent, entry.leg(i).mega_vol);
  }
  if (!request.durable) co_return Result<void>();
  co_return co_await reporter_.known(token);
}

// Whoever asks has the extent alone.
Task<Result<void>> VolumeDrive::release(uint32_t extent, CancelToken token) {
  if (!table_[extent].is_mapped()) co_return Result<void>();
  task::Deadline deadline(env_, env_.now() + kCallLimit, token);
  const Result<void> asked = co_await link_.release(session(), {extent}, deadline.token());
  if (asked) {
    table_.apply({.extent = extent, .entry = {}});
    co_return asked;
  }
  note_answer(asked.error());
  if (asked.error() == Errc::kUnreachable || asked.error() == Errc::kDenied) co_return asked;
  // It may have been done: nothing is sent there until that is known.
  const Result<void> known = co_await learn(extent);
  if (!known || !table_[extent].is_mapped()) co_return known;
  co_return fail(Errc::kUnreachable, "the arbiter did not take the space");
}

// Asks until an arbiter says where the extent lies.
Task<Result<void>> VolumeDrive::learn(uint32_t extent) {
  for (;;) {
    if (const Result<void> still = usable(); !still) co_return still;
    task::Deadline deadline(env_, env_.now() + kCallLimit, closing_.token());
    const Result<std::vector<Mapping>> page =
        co_await link_.table(session(), extent, deadline.token());
    if (page && !page->empty()) {
      table_.apply(page->front());
      co_return Result<void>();
    }
    if (!page) note_answer(page.error());
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, options_.allocator.retry, closing_.token());
  }
}

// What a flush promises holds of all legs that a later holder would trust.
Task<Result<void>> VolumeDrive::flush_for_user(CancelToken token) {
  const uint64_t told = losses_.told();
  Result<void> done = co_await flush_members(token);
  if (!done) co_return token.requested() ? done : losses_.tell(told, done);
  done = co_await reporter_.known(token);
  if (!done) co_return done;
  co_return losses_.tell(told, done);
}

Task<Result<void>> VolumeDrive::flush_members(CancelToken token) {
  drive::Join join;
  for (const auto& [id, member] : members_.all()) {
    if (!member->is_dirty && member->flushes == 0) continue;
    join.add();
    gate_.spawn(flush_member(*member, token, join));
  }
  co_return co_await join.all();
}

// With copies, a drive that fails lacks what it had not flushed, and others have it.
Task<void> VolumeDrive::flush_member(Member& member, CancelToken token, drive::Join& join) {
  if (intents_ != nullptr && !member.is_good()) {
    member.is_dirty = false;
    members_.note_loss(member);
    co_return join.finish({});
  }
  if (member.drive == nullptr) co_return join.finish(fail(kNoLeg));
  ++member.flushes;
  member.is_dirty = false;
  const uint64_t losses = member.losses;
  Result<void> done = co_await member.drive->flush(token);
  --member.flushes;
  members_.look(member);
  if (!done) member.is_dirty = true;
  if (!done && !token.requested()) {
    members_.blame(member, done.error());
    if (intents_ != nullptr) {
      if (member.losses == losses) members_.note_loss(member);
      done = {};
    }
  }
  join.finish(done);
}

}  // namespace cairn::volume
