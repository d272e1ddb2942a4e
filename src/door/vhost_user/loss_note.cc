// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/loss_note.h"

#include <algorithm>
#include <cstddef>

#include "base/medium_id.h"
#include "env/shared_word.h"

namespace cairn::door::vhost_user {

namespace {

// Whether the drive, as it is now, may lack something that completed when the record was written.
bool may_lack(const LossRecord& record, uint64_t server, const drive::Incarnation& now) {
  if (record.server == server) return false;
  const bool is_same = record.local_opening != 0 && record.local_opening == now.local_opening;
  if (is_same) return false;
  if (static_cast<LossState>(record.state) != LossState::kFlushed) return true;
  // What was flushed is lost with its medium only.
  const bool tells = record.medium != 0 && now.medium != 0 && !is_medium_of_name(record.medium) &&
                     !is_medium_of_name(now.medium);
  return tells && record.medium != now.medium;
}

}  // namespace

bool LossNote::attach(MutableBytes record) {
  record_ = record;
  const auto found = load<LossRecord>(record_);
  if (found.magic != kLossMagic) {
    note(state_);
    return false;
  }
  is_through_ = found.is_through != 0;
  const bool is_lost = found.state >= static_cast<uint64_t>(LossState::kLost) ||
                       may_lack(found, server_, drive_.incarnation());
  state_ = is_lost ? LossState::kLost : static_cast<LossState>(found.state);
  if (state_ != LossState::kFlushed) ++changes_;
  if (is_lost) ++losses_;
  if (state_ == LossState::kUnflushed) {
    // The opening in which that completed stays.
    set(offsetof(LossRecord, server), server_);
  } else {
    note(state_);
  }
  return is_lost;
}

void LossNote::detach() {
  record_ = {};
  state_ = LossState::kFlushed;
  is_through_ = false;
  told_ = losses_;
}

void LossNote::set_through(bool is_through) {
  is_through_ = is_through;
  if (!record_.empty()) set(offsetof(LossRecord, is_through), is_through ? 1 : 0);
}

void LossNote::set(size_t offset, uint64_t value) {
  env::store_shared<uint64_t>(&record_[offset], value);
  env::crash_fence();
}

// A state is of the incarnation that is noted with it. Killed in between, the record says rather
// too much than too little.
void LossNote::note(LossState state) {
  const LossState worse = std::max(state_, state);
  state_ = state;
  if (record_.empty()) return;
  const drive::Incarnation now = drive_.incarnation();
  set(offsetof(LossRecord, state), static_cast<uint64_t>(worse));
  set(offsetof(LossRecord, server), server_);
  set(offsetof(LossRecord, medium), now.medium);
  set(offsetof(LossRecord, local_opening), now.local_opening);
  set(offsetof(LossRecord, is_through), is_through_ ? 1 : 0);
  set(offsetof(LossRecord, magic), kLossMagic);
  set(offsetof(LossRecord, state), static_cast<uint64_t>(state));
}

void LossNote::cover(uint64_t changes) {
  covered_ = std::max(covered_, changes);
  note(covered_ == changes_ ? LossState::kFlushed : LossState::kUnflushed);
}

Result<void> LossNote::flushed(const Mark& mark, const Result<void>& done) {
  const bool is_news = mark.told < losses_;
  if (is_news) told_ = losses_;
  if (told_ == losses_) cover(mark.changes);
  if (!done || !is_news) return done;
  return fail(Errc::kIo, "the server was killed: writes that were not flushed may be lost");
}

void LossNote::flushed_unasked(const Mark& mark, const Result<void>& done) {
  if (told_ != losses_ || (!done && done.error() == Errc::kCancelled)) return;
  if (done) return cover(mark.changes);
  ++losses_;
  note(LossState::kLost);
}

}  // namespace cairn::door::vhost_user
