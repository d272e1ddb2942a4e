// SPDX-License-Identifier: Apache-2.0
// The usual request by the shortest way: a part of one extent all of whose legs are in order. What
// turns out to be unusual about it, before or after a drive was asked, is left to the longer way.
#include <array>
#include <bit>
#include <optional>
#include <span>

#include "drive/stable_memory.h"
#include "volume/volume_drive.h"

namespace cairn::volume {

using drive::DriveOp;
using drive::Ranges;
using task::Task;

namespace {
constexpr Error kLostMeanwhile{Errc::kIo, "a drive of the box was lost meanwhile"};
}  // namespace

void VolumeDrive::start(DriveOp& op) {
  was_used_ = true;
  const std::optional<Part> part = plain_part(op.request);
  if (!part) return requests_.spawn(serve(op));
  Result<void> done;
  if (run_part_now(*part, op.request, op.data(), done)) return op.complete(done);
  requests_.spawn(op.request.writes() ? write_plain(op, *part) : read_plain(op, *part));
}

bool VolumeDrive::run_now(const Request& request, Memory memory, Result<void>& done) {
  was_used_ = true;
  const std::optional<Part> part = plain_part(request);
  return part && run_part_now(*part, request, memory, done);
}

std::optional<VolumeDrive::Part> VolumeDrive::plain_part(const Request& request) const {
  using Kind = Request::Kind;
  const bool is_write = request.kind == Kind::kWrite;
  if ((request.kind != Kind::kRead && !is_write) || request.copy != 0) return std::nullopt;
  if (is_write && intents_ != nullptr && drive::has_unstable_memory(request)) return std::nullopt;
  const int shift = std::countr_zero(extent_blocks_);  // a power of two: check_extent_bytes()
  const uint64_t block = request.lba.value();
  const Part part{.extent = static_cast<uint32_t>((block >> shift) + kFirstDataExtent),
                  .offset = block & (extent_blocks_ - 1),
                  .blocks = request.blocks};
  const bool fits = part.offset + part.blocks <= extent_blocks_;
  if (!fits || !is_plain(part.extent, is_write)) return std::nullopt;
  return part;
}

bool VolumeDrive::is_plain(uint32_t extent, bool is_write) const {
  const MapEntry& entry = table_[extent];
  if (!entry.is_mapped() || entry.has_stale() || table_.has_unreported()) return false;
  if (is_write && (copying_ || reporter_.is_settling() || opened_.is_snapshot)) return false;
  if (is_write && table_.is_shared(extent)) return false;
  if (is_write && intents_ == nullptr && has_copies(extent)) return false;
  return (intents_ == nullptr || !unequal_.has(extent)) && usable();
}

// Null: it does not answer, or takes less at a time.
Member* VolumeDrive::plain_member(const Leg& leg, Part part) const {
  Member* member = members_.find(leg.mega_vol);
  if (member == nullptr || !member->is_good()) return nullptr;
  const drive::Geometry& shape = member->drive->geometry();
  const bool fits = shape.block_size == kBlockBytes && part.blocks <= shape.transfer_blocks;
  return fits ? member : nullptr;
}

drive::Request VolumeDrive::on_leg(const Request& request, const Leg& leg, Part part) const {
  Request there = request;
  there.lba = Lba(leg.extent * extent_blocks_ + part.offset);
  return there;
}

// Whether the leg still is what it was before it was asked.
bool VolumeDrive::has_answered(uint32_t extent, Member& member) {
  members_.look(member);
  return member.is_good() && table_.is_trusted(extent, member.info.id);
}

// On drives that keep their blocks in memory. Writes to several legs have to be alone.
bool VolumeDrive::run_part_now(Part part, const Request& request, Memory memory,
                               Result<void>& done) {
  const bool is_write = request.writes();
  const MapEntry& entry = table_[part.extent];
  if (ranges_.has_exclusive() || (is_write && (intents_ != nullptr || entry.size() > 1))) {
    return false;
  }
  const size_t index = pick(part.extent, {});
  if (index == entry.size()) return false;
  const Leg leg = entry.leg(index);
  Member* member = plain_member(leg, part);
  if (member == nullptr) return false;
  const std::optional<Result<void>> ran =
      member->drive->try_now(on_leg(request, leg, part), memory);
  if (!ran) return false;
  member->is_dirty |= is_write;
  if (!*ran || !has_answered(part.extent, *member)) return false;
  done = *ran;
  return true;
}

Task<void> VolumeDrive::read_plain(DriveOp& op, Part part) {
  Ranges::Hold hold(ranges_, Ranges::Mode::kShared, op.request.lba.value(), op.request.blocks,
                    op.token());
  const Result<void> held = co_await hold;
  Result<void> done;
  bool is_done = false;
  // Others may have run meanwhile.
  if (held && is_plain(part.extent, false)) {
    const size_t index = pick(part.extent, {});
    const MapEntry entry = table_[part.extent];
    const Leg leg = index < entry.size() ? entry.leg(index) : Leg{};
    Member* member = index < entry.size() ? plain_member(leg, part) : nullptr;
    if (member != nullptr) {
      const Request there = on_leg(op.request, leg, part);
      ++member->reads;
      done = co_await member->drive->submit(there, op.data(), {}, op.token());
      --member->reads;
      is_done = (has_answered(part.extent, *member) && done) || entry.size() == 1;
      if (!done && !op.token().requested()) members_.blame(*member, done.error());
    }
  }
  hold.leave();
  if (!is_done) co_return co_await serve(op);
  // What was read while somebody else had the volume counts for nothing.
  if (done && !lease_->is_held()) done = usable();
  op.complete(done);
}

// Where all legs are in one box that writes them with one command.
bool VolumeDrive::can_write_at_once(const MapEntry& entry, Part part) const {
  Member* head = plain_member(entry.leg(0), part);
  for (size_t i = 1; head != nullptr && i < entry.size(); ++i) {
    Member* member = plain_member(entry.leg(i), part);
    if (member == nullptr || !head->drive->can_replicate_to(*member->drive)) return false;
  }
  return head != nullptr;
}

// What has failed may be on any leg: whoever asked writes to all of them again.
Task<Result<void>> VolumeDrive::write_at_once(MapEntry entry, Part part, DriveOp& op) {
  std::array<Member*, kReplicasMax> members{};
  std::array<drive::Replica, kReplicasMax> others{};
  for (size_t i = 0; i < entry.size(); ++i) {
    members[i] = plain_member(entry.leg(i), part);
    const Lba lba = on_leg(op.request, entry.leg(i), part).lba;
    if (i > 0) others[i - 1] = {.drive = members[i]->drive.get(), .lba = lba};
  }
  Request there = on_leg(op.request, entry.leg(0), part);
  there.replicas = std::span(others).first(entry.size() - 1);
  Result<void> done = co_await members[0]->drive->submit(there, op.data(), {}, op.token());
  for (size_t i = 0; i < entry.size(); ++i) {
    members[i]->is_dirty = true;
    if (!has_answered(part.extent, *members[i]) && done) done = fail(kLostMeanwhile);
  }
  if (done) ++counters_.at_once;
  co_return done;
}

Task<void> VolumeDrive::write_plain(DriveOp& op, Part part) {
  Ranges::Hold hold(ranges_, intents_ != nullptr ? Ranges::Mode::kExclusive : Ranges::Mode::kShared,
                    op.request.lba.value(), op.request.blocks, op.token());
  const Result<void> held = co_await hold;
  const drive::Regions region{.first = region_of(part.extent), .count = 1};
  if (!held || !is_plain(part.extent, true) || has_new_members(table_[part.extent]) ||
      (intents_ != nullptr && !intents_->enter_marked(region))) {
    hold.leave();
    co_return co_await serve(op);
  }
  if (intents_ != nullptr) sweeper_.start();
  const MapEntry entry = table_[part.extent];
  Result<void> done;
  bool is_done = true;
  if (entry.size() > 1 && can_write_at_once(entry, part)) {
    done = co_await write_at_once(entry, part, op);
    is_done = done.has_value();
  } else {
    for (size_t i = 0; is_done && i < entry.size(); ++i) {
      const Leg leg = entry.leg(i);
      Member* member = plain_member(leg, part);
      is_done = member != nullptr;
      if (!is_done) break;
      const Request there = on_leg(op.request, leg, part);
      done = co_await member->drive->submit(there, op.data(), {}, op.token());
      member->is_dirty = true;
      is_done = (has_answered(part.extent, *member) && done) || entry.size() == 1;
      if (!done && !op.token().requested()) members_.blame(*member, done.error());
    }
  }
  if (!is_done) {
    done = co_await write_chain(part, op.request, op.data(), op.token());
  } else if (done && op.request.durable) {
    done = co_await reporter_.known(op.token());
  }
  if (intents_ != nullptr) intents_->leave(region);
  hold.leave();
  if (done && !lease_->is_held()) done = usable();
  op.complete(done);
}

}  // namespace cairn::volume
