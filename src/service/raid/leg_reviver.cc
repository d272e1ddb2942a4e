// SPDX-License-Identifier: Apache-2.0
#include "service/raid/leg_reviver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "task/deadline.h"

namespace cairn::drive {

namespace {

constexpr int kPauseFactor = 2;
constexpr int kPauseMax = 16;  // times what is usual between two attempts

}  // namespace

LegReviver::LegReviver(env::Env& env, Owner& owner, Legs& legs, LateDrives* late, Duration retry,
                       task::CancelToken closing, task::Gate& gate)
    : env_(env),
      owner_(owner),
      legs_(legs),
      late_(late),
      retry_(retry),
      closing_(closing),
      gate_(gate),
      absent_pause_(retry),
      absent_next_(env.now() + retry) {}

bool LegReviver::has_work() const {
  const bool may_come = std::ranges::any_of(legs_.absent, [this](const AbsentDrive& one) {
    return one.drive != nullptr || late_ != nullptr;
  });
  return std::ranges::any_of(legs_, [this, may_come](const Leg& leg) {
    return leg.state == Leg::State::kLost &&
           (leg.drive != nullptr || !legs_.spares.empty() || may_come);
  });
}

void LegReviver::wake() {
  if (runs_ || closing_.requested() || !has_work()) return;
  runs_ = true;
  gate_.spawn(run());
}

std::string LegReviver::try_now() {
  const size_t lost = legs_.count(Leg::State::kLost);
  if (lost == 0) return "no leg is lost";
  absent_pause_ = retry_;
  absent_next_ = env_.now();
  demanded_.set();
  wake();
  return fmt::format("legs that are tried again: {}", lost);
}

task::Task<void> LegReviver::run() {
  while (has_work()) {
    task::Deadline pause(env_, env_.now() + retry_, closing_);
    const Result<void> waited = co_await demanded_.wait(pause.token());
    (void)waited;  // demanded, or due
    if (closing_.requested()) break;
    demanded_.reset();
    if (env_.now() >= absent_next_) co_await call_absent();
    for (size_t leg = 0; leg < legs_.size() && !closing_.requested(); ++leg) {
      if (legs_[leg].state != Leg::State::kLost) continue;
      bool is_back = false;
      bool is_there = legs_[leg].drive != nullptr;
      if (is_there && (legs_[leg].has_changed() || legs_[leg].must_reopen))
        is_there = co_await renew(leg);
      if (is_there) is_back = co_await owner_.revive(leg);
      if (!is_back && !legs_.spares.empty() && !closing_.requested()) {
        co_await owner_.replace(leg);
      }
    }
  }
  runs_ = false;
}

task::Task<bool> LegReviver::renew(size_t leg) {
  Leg& lost = legs_[leg];
  if (late_ != nullptr) {
    lost.must_reopen = true;
    const Result<void> opened = co_await late_->reopen(*lost.drive, closing_);
    if (!opened) co_return false;
    lost.must_reopen = false;
  }
  const uint64_t before = lost.known.medium;
  lost.remember();
  if (before != 0 && lost.known.medium != 0 && lost.known.medium != before) {
    lost.is_replaced = true;
  }
  co_return true;
}

task::Task<void> LegReviver::call_absent() {
  for (size_t i = 0; i < legs_.absent.size() && !closing_.requested();) {
    const bool is_settled = co_await call(legs_.absent[i]);
    if (is_settled) {
      legs_.absent.erase(legs_.absent.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  absent_next_ = env_.now() + absent_pause_;
  absent_pause_ = std::min(absent_pause_ * kPauseFactor, retry_ * kPauseMax);
}

task::Task<bool> LegReviver::call(AbsentDrive& one) {
  if (one.drive == nullptr) {
    if (late_ == nullptr) co_return false;
    Result<std::unique_ptr<Drive>> opened = co_await late_->open(one.index, closing_);
    if (!opened) co_return false;
    one.drive = std::move(*opened);
    legs_.given[one.index] = one.drive.get();
  }
  const Newcomer became = co_await owner_.meet(one.drive);
  if (became == Newcomer::kSilent) co_return false;
  if (became == Newcomer::kForeign) {
    ++legs_.refused;
    legs_.foreign.push_back(one.index);
    legs_.unused.push_back(std::move(one.drive));
  }
  co_return true;
}

}  // namespace cairn::drive
