// SPDX-License-Identifier: Apache-2.0
// Requests: what is held for them, and how they fall into parts of extents.
#include "volume/volume_drive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/medium_id.h"
#include "base/rng.h"
#include "drive/pieces.h"
#include "drive/scatter.h"
#include "drive/stable_memory.h"

namespace cairn::volume {

using drive::DriveOp;
using drive::Ranges;
using task::CancelToken;
using task::Task;

Task<void> VolumeDrive::serve(DriveOp& op) {
  Result<void> done = usable();
  if (done) done = co_await run(op);
  // What was read while somebody else had the volume counts for nothing.
  if (done && !lease_->is_held()) done = usable();
  op.complete(done);
}

Result<void> VolumeDrive::usable() const {
  if (closing_.requested()) return fail(Errc::kClosed, "the volume is being closed");
  if (!lease_->is_held()) {
    return fail(Errc::kDenied, "the lease of the volume is lost: somebody else may have it");
  }
  return {};
}

Task<Result<void>> VolumeDrive::run(DriveOp& op) {
  using Kind = Request::Kind;
  const Kind kind = op.request.kind;
  if (opened_.is_snapshot && op.request.writes()) {
    co_return fail(Errc::kDenied, "a snapshot cannot be written: make a clone of it");
  }
  if (kind == Kind::kFlush) co_return co_await flush_for_user(op.token());
  if (kind == Kind::kDiscard || kind == Kind::kWriteZeroes) {
    co_return co_await clear_parts(op.request, op.token());
  }
  const bool writes_twice = kind == Kind::kWrite && has_copies(op.request);
  const bool looks_twice = writes_twice || kind == Kind::kCompare || kind == Kind::kCompareAndWrite;
  if (looks_twice && drive::has_unstable_memory(op.request)) {
    co_return co_await drive::run_on_copy(env_, *this, op);
  }
  // Legs take writes of a block in one order; without copies drives have none to keep.
  const bool is_alone = kind == Kind::kCompareAndWrite || writes_twice;
  co_return co_await run_alone(op, is_alone ? Ranges::Mode::kExclusive : Ranges::Mode::kShared);
}

// Whether a write to the extent goes to several legs: also without copies, while it moves.
bool VolumeDrive::has_copies(uint32_t extent) const {
  return intents_ != nullptr || table_[extent].size() > 1 || splitting_ == extent;
}

bool VolumeDrive::has_copies(const Request& request) const {
  for (uint64_t done = 0; done < request.blocks;) {
    const Part part = part_at(request, done);
    if (has_copies(part.extent)) return true;
    done += part.blocks;
  }
  return false;
}

Task<Result<void>> VolumeDrive::run_alone(DriveOp& op, Ranges::Mode mode) {
  const Request request = op.request;
  for (;;) {
    const Result<void> settled = co_await settle_parts(request, op.token());
    if (!settled) co_return settled;
    Ranges::Hold hold(ranges_, mode, request.lba.value(), request.blocks, op.token());
    const Result<void> held = co_await hold;
    if (!held) co_return held;
    // Whoever was before may have left legs that differ, or taken the place away.
    if (may_differ(request) || (request.writes() && !has_places(request))) continue;
    if (request.kind == Request::Kind::kWrite && mode == Ranges::Mode::kShared &&
        has_copies(request)) {
      hold.leave();
      co_return co_await run(op);
    }
    if (request.kind == Request::Kind::kCompare) {
      co_return co_await compare_parts(request, op.data(), op.token());
    }
    if (request.kind == Request::Kind::kCompareAndWrite) {
      const Result<void> same = co_await compare_parts(request, op.data(), op.token());
      if (!same) co_return same;
      Request writing = request;
      writing.kind = Request::Kind::kWrite;
      co_return co_await run_parts(writing, op.second(), op.token());
    }
    co_return co_await run_parts(request, op.data(), op.token());
  }
}

VolumeDrive::Part VolumeDrive::part_at(const Request& request, uint64_t done) const {
  const uint64_t block = request.lba.value() + done;
  const uint64_t offset = block % extent_blocks_;
  return {.extent = static_cast<uint32_t>(block / extent_blocks_ + kFirstDataExtent),
          .offset = offset,
          .blocks = std::min(request.blocks - done, extent_blocks_ - offset),
          .at = done};
}

bool VolumeDrive::may_differ(const Request& request) const {
  if (intents_ == nullptr) return false;
  for (uint64_t done = 0; done < request.blocks;) {
    const Part part = part_at(request, done);
    if (unequal_.has(part.extent)) return true;
    done += part.blocks;
  }
  return false;
}

// Whether all that is written lies somewhere, and is nobody else's.
bool VolumeDrive::has_places(const Request& request) const {
  for (uint64_t done = 0; done < request.blocks;) {
    const Part part = part_at(request, done);
    if (!table_[part.extent].is_mapped() || table_.is_shared(part.extent)) return false;
    done += part.blocks;
  }
  return true;
}

// Before the blocks are held: legs that may differ are made equal, and what is written gets a place
// that is the volume's own.
Task<Result<void>> VolumeDrive::settle_parts(const Request& request, CancelToken token) {
  const Request range = request;
  const bool is_write = range.writes() && range.kind != Request::Kind::kWriteZeroes;
  for (uint64_t done = 0; done < range.blocks;) {
    const Part part = part_at(range, done);
    done += part.blocks;
    Result<void> settled;
    if (intents_ != nullptr && unequal_.has(part.extent)) {
      settled = co_await equalize(part.extent, token);
    }
    if (settled && is_write) settled = co_await allocator_.map(part.extent, token);
    if (settled && is_write) settled = co_await copy_on_write_.unshare(part.extent, token);
    if (!settled) co_return settled;
  }
  co_return Result<void>();
}

Task<Result<void>> VolumeDrive::run_parts(Request request, Memory memory, CancelToken token) {
  for (uint64_t done = 0; done < request.blocks;) {
    const Part part = part_at(request, done);
    drive::Pieces pieces;
    pieces.add(memory, part.at * kBlockBytes, part.blocks * kBlockBytes);
    const Result<void> result = request.kind == Request::Kind::kRead
                                    ? co_await read_part(part, request, pieces.all(), token)
                                    : co_await write_part(part, request, pieces.all(), token);
    if (!result) co_return result;
    done += part.blocks;
  }
  co_return Result<void>();
}

Task<Result<void>> VolumeDrive::compare_parts(Request request, Memory memory, CancelToken token) {
  Result<drive::Scratch> read = drive::Scratch::make(env_, request.blocks * kBlockBytes);
  if (!read) co_return fail(read.error());
  request.kind = Request::Kind::kRead;
  request.copy = 0;
  const MutableBytes piece = read->bytes();
  const Result<void> done = co_await run_parts(request, {&piece, 1}, token);
  if (!done) co_return done;
  Bytes left = piece;
  for (const MutableBytes each : memory) {
    if (!std::ranges::equal(each, left.first(each.size()))) {
      co_return fail(Errc::kMismatch, "the volume holds other bytes");
    }
    left = left.subspan(each.size());
  }
  co_return Result<void>();
}

// A range without end falls into extents, each held for itself.
Task<Result<void>> VolumeDrive::clear_parts(Request request, CancelToken token) {
  for (uint64_t done = 0; done < request.blocks;) {
    const Part part = part_at(request, done);
    done += part.blocks;
    if (token.requested()) co_return fail(token.error());
    if (!table_[part.extent].is_mapped()) continue;
    const Result<void> cleared = co_await clear_part(part, request, token);
    if (!cleared) co_return cleared;
  }
  co_return Result<void>();
}

Task<Result<void>> VolumeDrive::clear_part(Part part, Request request, CancelToken token) {
  request.kind = Request::Kind::kWriteZeroes;
  request.lba = Lba(first_block(part.extent) + part.offset);
  request.blocks = part.blocks;
  bool may_release = part.blocks == extent_blocks_ && !request.keep_space;
  for (;;) {
    Result<void> settled = co_await settle_parts(request, token);
    if (settled && !may_release) settled = co_await copy_on_write_.unshare(part.extent, token);
    if (!settled) co_return settled;
    const bool is_shared = table_.is_shared(part.extent);
    Ranges::Hold changing(changing_, Ranges::Mode::kExclusive, part.extent, is_shared ? 1 : 0,
                          token);
    Result<void> held = co_await changing;
    if (!held) co_return held;
    Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, request.lba.value(), request.blocks,
                      token);
    held = co_await hold;
    if (!held) co_return held;
    if (may_differ(request) || table_.is_shared(part.extent) != is_shared) continue;
    if (is_shared && !may_release) continue;
    if (may_release) {
      const Result<void> released = co_await release(part.extent, token);
      // Without an arbiter the space stays, and reads as zeroes all the same.
      if (released || released.error() != Errc::kUnreachable) co_return released;
      may_release = false;
      if (is_shared) continue;
    }
    co_return co_await write_part(part, request, {}, token);
  }
}

drive::Extent VolumeDrive::extent_at(Lba lba, uint64_t max) const {
  const uint64_t end = std::min(geometry_.blocks, lba.value() + max);
  drive::Extent found;
  for (uint64_t block = lba.value(); block < end;) {
    const Part part = part_at({.lba = Lba(block), .blocks = end - block}, 0);
    const bool is_hole = !table_[part.extent].is_mapped();
    if (found.blocks > 0 && is_hole != found.is_hole) break;
    found.is_hole = is_hole;
    found.blocks += part.blocks;
    block += part.blocks;
  }
  return found;
}

drive::Incarnation VolumeDrive::incarnation() const {
  const auto halves = std::bit_cast<std::array<uint64_t, 2>>(pool_.uuid);
  const uint64_t medium = mix64(mix64(halves[0] ^ halves[1]) + opened_.session.volume.value());
  return losses_.mixed({.medium = medium_id_of_one(medium), .opening = opening_});
}

std::vector<drive::Fact> VolumeDrive::facts() const {
  uint64_t mapped = 0;
  for (uint32_t i = 0; i < table_.extents(); ++i) mapped += table_[i].is_mapped() ? 1 : 0;
  uint64_t barred = 0;
  for (const auto& [id, member] : members_.all()) barred += member->is_barred ? 1 : 0;
  return {{.name = "extents", .value = table_.extents()},
          {.name = "extents_mapped", .value = mapped},
          {.name = "table_bytes", .value = table_.bytes()},
          {.name = "arbiter_allocations", .value = allocator_.calls()},
          {.name = "extents_to_heal", .value = heal_.count()},
          {.name = "extents_equalized", .value = counters_.equalized},
          {.name = "extents_mended", .value = counters_.mended},
          {.name = "legs_resynced", .value = counters_.resynced},
          {.name = "legs_relocated", .value = counters_.relocated},
          {.name = "writes_at_once", .value = counters_.at_once},
          {.name = "drives_unfenced", .value = barred},
          {.name = "snapshots_made", .value = counters_.snapshots},
          {.name = "extents_unshared", .value = counters_.unshared},
          {.name = "regions_marked", .value = intents_ == nullptr ? 0 : intents_->marked()}};
}

std::vector<drive::Job> VolumeDrive::jobs() const {
  const uint64_t left = heal_.count();
  if (left == 0) return {};
  return {{.name = "rebuild",
           .done = healed_ * pool_.extent_bytes,
           .total = (healed_ + left) * pool_.extent_bytes}};
}

std::vector<drive::Concern> VolumeDrive::concerns() const {
  using drive::Health;
  std::vector<drive::Concern> all;
  const auto add = [&](Health health, std::string_view code, std::string what) {
    all.push_back({.health = health, .code = code, .what = std::move(what), .below = {}});
  };
  if (!lease_->is_held()) {
    add(Health::kFailing, "lease_lost",
        "the lease has ended, so somebody else may have the volume: close it and open it again");
  }
  if (allocator_.waiting_since() != Time::never() ||
      copy_on_write_.waiting_since() != Time::never()) {
    add(Health::kFailing, "arbiter_away",
        "writes to extents that are new, or shared with snapshots, wait: no arbiter answers; "
        "others go on. See 'cairn arbiter'");
  } else if (reporter_.waiting_since() != Time::never()) {
    add(Health::kDegraded, "arbiter_away",
        "flushes wait until an arbiter is told of legs that lack writes. See 'cairn arbiter'");
  }
  if (lacks_space_) {
    add(Health::kDegraded, "no_room_to_rebuild",
        "no drive of the pool has room for legs that were lost: add drives to it");
  }
  uint64_t short_of = 0;
  for (size_t i = heal_.next(0); i < heal_.size(); i = heal_.next(i + 1)) {
    short_of += table_.trusted(static_cast<uint32_t>(i)) < replicas_ ? 1 : 0;
  }
  if (short_of > 0) {
    add(Health::kDegraded, "replicas_missing",
        fmt::format("{} extents have fewer replicas than {}; they get them back by themselves",
                    short_of, replicas_));
  }
  return all;
}

Task<std::expected<std::string, std::string>> VolumeDrive::tell(std::vector<std::string> args) {
  if (args.size() != 1 || args[0] != "scrub") {
    co_return std::unexpected("a volume takes one command: 'scrub'");
  }
  const Result<uint64_t> mended = co_await scrub();
  if (!mended) co_return std::unexpected(mended.error().text());
  co_return fmt::format("{} extents had legs that differed, and were mended", *mended);
}

}  // namespace cairn::volume
