// SPDX-License-Identifier: Apache-2.0
#include "share/slices.h"

namespace cairn::share {

bool Slices::take(uint64_t cost, Time now) {
  if (is_alone_ || now - unanswered_ >= static_cast<int64_t>(kIdleEpochs) * kEpoch) go_alone(now);
  if (room() == 0) {
    was_short_ = true;
    return false;
  }
  if (is_early(now)) return false;
  spend(cost, now);
  return true;
}

uint64_t Slices::released(Time now) const {
  const Duration left = std::clamp(ends_ - now - kAhead, Duration{}, kEpoch);
  // Whole milliseconds would be too coarse, and nanoseconds of a large slice too many.
  const auto left_us = static_cast<uint64_t>(left.ns / 1000);
  constexpr auto kEpochUs = static_cast<uint64_t>(kEpoch.ns / 1000);
  const uint64_t later = granted_ / kEpochUs * left_us;
  return std::max(granted_ - later, std::min(granted_, kAskMin));
}

bool Slices::borrow(uint64_t cost, Time now) {
  const bool owes = spent_ + given_back_ > granted_;
  if (under_way_ > 0 || waiting_ > 0 || owes || cost > kAskMin) return false;
  spend(cost, now);
  return true;
}

void Slices::spend(uint64_t cost, Time now) {
  took_ = now;
  ++under_way_;
  spent_ += cost;
  used_ += cost;
}

void Slices::set_waiting(uint64_t cost, uint64_t in, uint64_t out) {
  waiting_ = cost;
  if (cost == 0) return;
  in_permille_ = static_cast<uint32_t>(std::min<uint64_t>(in * 1000 / cost, 1000));
  out_permille_ = static_cast<uint32_t>(std::min<uint64_t>(out * 1000 / cost, 1000));
}

void Slices::turn(uint64_t granted) {
  spent_ -= std::min(spent_, granted_ - given_back_);
  given_back_ = 0;
  granted_ = granted;
  usual_.add(used_);
  used_before_ = used_;
  used_ = 0;
  was_short_before_ = was_short_;
  was_short_ = false;
}

void Slices::go_alone(Time now) {
  if (equal_ == 0) return;  // it never had anything
  if (!is_alone_) {
    is_alone_ = true;
    share_ = usual_.value();
    ends_ = now;
  }
  if (now < ends_) return;
  const auto gap = static_cast<int64_t>(equal_) - static_cast<int64_t>(share_);
  share_ = static_cast<uint64_t>(static_cast<int64_t>(share_) + (gap / kDecay));
  turn(share_);
  ends_ = now + kEpoch;
}

Time Slices::due_at() const {
  if (unanswered_ != Time::never()) return asked_ + kEpoch;
  if (waiting_ > 0 && room() == 0) return std::max(asked_ + kAskAgain, Time{});
  if (room() > 0 && is_at_rest()) return std::min(ends_, took_ + kGiveBack);
  return granted_ > 0 || used_ > 0 || must_tell_ ? ends_ : Time::never();
}

std::optional<SliceRequest> Slices::request(Time now) {
  if (now < due_at()) return std::nullopt;
  asked_ = now;
  if (is_at_rest() && now - took_ >= kGiveBack) given_back_ += room();
  unanswered_ = std::min(unanswered_, now);
  // Twice as much as it had if that was too little, else a little more.
  const uint64_t usual = std::max(used_, used_before_);
  const bool is_short = was_short_ || was_short_before_;
  const uint64_t next = waiting_ + (is_short ? usual * 2 : usual + (usual / 8));
  must_tell_ = next > 0;
  const uint64_t wants = std::max({waiting_, used_, kAskMin}) + spent_ + given_back_;
  const uint64_t lacks = wants > granted_ ? wants - granted_ : 0;
  return SliceRequest{.drive = drive_,
                      .auction = auction_,
                      .epoch = epoch_,
                      .has = is_alone_ ? 0 : granted_,
                      .given_back = is_alone_ ? 0 : given_back_,
                      .before = before_,
                      .spent_before = spent_before_,
                      .now = waiting_ > 0 ? lacks : 0,
                      .next = next,
                      .in_permille = in_permille_,
                      .out_permille = out_permille_};
}

void Slices::granted(const SliceGrant& grant, Time now) {
  if (grant.auction == auction_ && grant.epoch < epoch_) return;  // it was late
  unanswered_ = Time::never();
  if (grant.equal > 0) equal_ = grant.equal;
  if (grant.is_learning) {
    if (!is_alone_) go_alone(now);
    unanswered_ = now;
    return;
  }
  if (grant.auction != auction_ || grant.epoch != epoch_) {
    before_ = grant.auction == auction_ ? epoch_ : 0;
    spent_before_ = std::min(spent_, granted_ - given_back_) + given_back_;
    // What was used of an epoch of its own that is not over counts against the new slice.
    uint64_t counted = 0;
    if (is_alone_ && ends_ > now) {
      counted = std::min(spent_, granted_) * static_cast<uint64_t>((ends_ - now).ns) /
                static_cast<uint64_t>(kEpoch.ns);
    }
    turn(0);
    spent_ += counted;
    auction_ = grant.auction;
    epoch_ = grant.epoch;
  }
  is_alone_ = false;
  granted_ = std::max(granted_, grant.granted);
  ends_ = now + std::clamp(grant.left, Duration{}, kEpoch);
}

}  // namespace cairn::share
