// SPDX-License-Identifier: Apache-2.0
#include "volume/members.h"

#include <algorithm>
#include <set>
#include <utility>

#include "task/deadline.h"

namespace cairn::volume {

using task::Task;

namespace {

constexpr Duration kTryLimit = 2_s;

// Errors that speak of the request, or of whoever asked, and not of the drive.
bool is_of_request(const Error& error) {
  return error == Errc::kInvalid || error == Errc::kUnsupported || error == Errc::kCancelled ||
         error == Errc::kLimit || error == Errc::kMismatch;
}
// Those of a drive that answers.
bool is_of_medium(const Error& error) {
  return error == Errc::kIo || error == Errc::kNoSpace || error == Errc::kCorrupt;
}
// A box may serve less of a drive than it did, and refuse requests for the rest.
bool is_smaller(const Member& member, const MegaVolPool& pool) {
  return member.drive != nullptr &&
         member.drive->geometry().bytes() < member.info.extents * pool.extent_bytes;
}

}  // namespace

bool Members::set(const std::vector<MegaVolInfo>& infos, const std::vector<MegaVolId>& barred) {
  bool is_changed = false;
  std::set<MegaVolId> removed;
  for (const auto& [id, member] : members_) removed.insert(id);
  for (const MegaVolInfo& info : infos) {
    const Member* member = find(info.id);
    if (member != nullptr && member->info.uuid == info.uuid) removed.erase(info.id);
  }
  for (const MegaVolId id : removed) retire(id);
  for (const MegaVolInfo& info : infos) {
    Member* member = find(info.id);
    const bool is_barred = std::ranges::find(barred, info.id) != barred.end();
    if (member == nullptr) {
      member = members_.try_emplace(info.id, std::make_unique<Member>(info)).first->second.get();
      if (by_id_.size() <= info.id.value()) by_id_.resize(info.id.value() + size_t{1});
      by_id_[info.id.value()] = member;
      ++untried_;
      member->is_barred = is_barred;
      if (is_barred) set_state(*member, Member::State::kAway);
      start(*member);
      is_changed = true;
    } else if (member->is_barred && !is_barred) {
      member->is_barred = false;
      start(*member);
      is_changed = true;
    }
    is_changed |= member->info.is_leaving != info.is_leaving;
    member->info.is_leaving = info.is_leaving;
  }
  return is_changed;
}

// The pool has it no more, and may give its number to another drive: nothing of ours is on it.
// Requests to it may be under way, and whoever waits for them still looks at it.
void Members::retire(MegaVolId id) {
  const auto found = members_.find(id);
  Member& member = *found->second;
  if (member.state == Member::State::kOpening) {
    --untried_;
    tried_.set();
  }
  member.state = Member::State::kGone;
  member.is_former = true;
  former_members_.push_back(std::move(found->second));
  members_.erase(found);
  by_id_[id.value()] = nullptr;
}

Task<void> Members::wait_until_tried(Duration limit) {
  task::Deadline deadline(env_, env_.now() + limit, stop_.token());
  while (untried_ > 0) {
    tried_.reset();
    const Result<void> waited = co_await tried_.wait(deadline.token());
    if (!waited) break;
  }
}

void Members::start(Member& member) {
  if (member.is_looking || member.is_former || member.is_barred || stop_.requested()) return;
  member.is_looking = true;
  gate_.spawn(revive(member));
}

void Members::set_state(Member& member, Member::State state) {
  if (member.state == state) return;
  if (member.state == Member::State::kOpening) {
    --untried_;
    tried_.set();
  }
  if (state == Member::State::kAway) member.away_since = env_.now();
  member.state = state;
  owner_.member_changed(member);
}

void Members::look(Member& member) {
  if (member.drive == nullptr) return;
  const drive::Incarnation now = member.drive->incarnation();
  if (now == member.known) return;
  const bool is_other = now.medium != member.known.medium && member.known.medium != 0;
  const bool is_reopened = now.opening != member.known.opening;
  member.known = now;
  if (is_reopened) note_loss(member);
  // Whether the medium is the one that it was, its label says.
  if (is_other && member.is_good()) {
    set_state(member, Member::State::kAway);
    start(member);
  }
}

void Members::note_loss(Member& member) {
  ++member.losses;
  owner_.member_lost_writes(member);
}

bool Members::blame(Member& member, const Error& error) {
  if (is_smaller(member, pool_) && member.is_good()) {
    set_state(member, Member::State::kAway);
    start(member);
  }
  if (is_of_request(error)) return false;
  if (error == Errc::kDenied) member.is_denied = true;
  if (!is_of_medium(error) && member.is_good()) {
    set_state(member, Member::State::kAway);
    start(member);
  }
  return true;
}

Task<void> Members::revive(Member& member) {
  while (!stop_.requested() && !member.is_former) {
    const Result<void> back = co_await try_once(member);
    if (stop_.requested() || member.is_former) break;
    if (back) {
      set_state(member, Member::State::kGood);
      break;
    }
    set_state(member, is_other_drive(back.error()) ? Member::State::kGone : Member::State::kAway);
    const Result<void> slept = co_await task::sleep_for(env_, retry_, stop_.token());
    if (!slept) break;
  }
  member.is_looking = false;
}

Task<Result<void>> Members::try_once(Member& member) {
  task::Deadline deadline(env_, env_.now() + kTryLimit, stop_.token());
  if (member.drive == nullptr && !member.was_open) {
    co_return co_await open(member, deadline.token());
  }
  if (member.drive != nullptr && !member.is_denied) {
    const Result<void> checked =
        co_await check_mega_vol(env_, *member.drive, pool_, member.info, deadline.token());
    if (!checked && checked.error() == Errc::kDenied) member.is_denied = true;
    look(member);
    // What was opened does not come back, and errors speak of it for ever: what is there now has to
    // be opened to be read.
    const bool is_replaced = member.known.medium != member.opened_medium;
    if (checked || !is_replaced || is_other_drive(checked.error())) co_return checked;
  }
  // Opening lets the client write there again: a holder that was expelled, and does not know it,
  // would undo its own fencing.
  const Result<void> confirmed = co_await owner_.confirm(deadline.token());
  if (!confirmed) co_return confirmed;
  if (member.drive != nullptr) give_up_drive(member);
  co_return co_await open(member, deadline.token());
}

// Requests to it may be under way that end soon; and what was not flushed may be lost.
void Members::give_up_drive(Member& member) {
  former_.push_back(std::move(member.drive));
  note_loss(member);
}

Task<Result<void>> Members::open(Member& member, task::CancelToken token) {
  Result<std::unique_ptr<drive::Drive>> opened =
      co_await open_mega_vol(env_, source_, host_, pool_, member.info, token);
  if (!opened) co_return fail(opened.error());
  const Result<void> confirmed = co_await owner_.confirm(token);
  if (!confirmed) {
    co_await (*opened)->close();
    co_return confirmed;
  }
  member.is_denied = false;
  member.was_open = true;
  member.drive = std::move(*opened);
  member.known = member.drive->incarnation();
  member.opened_medium = member.known.medium;
  co_return Result<void>();
}

Task<void> Members::close() {
  stop_.request();
  tried_.set();
  co_await gate_.close();
  for (const auto& each : former_) co_await each->close();
  for (const auto& each : former_members_) {
    if (each->drive != nullptr) co_await each->drive->close();
  }
  for (auto& [id, member] : members_) {
    if (member->drive != nullptr) co_await member->drive->close();
  }
}

}  // namespace cairn::volume
