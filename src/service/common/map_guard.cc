// SPDX-License-Identifier: Apache-2.0
#include "service/common/map_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "drive/local_opening.h"

namespace cairn::drive {

bool MapGuard::is_sound() {
  if (!is_lost_ && (owner_.map_journal().has_lost() || has_changed())) {
    is_lost_ = true;
    losses_.add();
    owner_.map_journal().lose();
  }
  return !is_lost_;
}

void MapGuard::look() {
  for (Below& one : below_) one.watch.look(*one.drive);
}

bool MapGuard::has_changed() const {
  return std::ranges::any_of(below_,
                             [](const Below& one) { return one.watch.has_changed(*one.drive); });
}

Incarnation MapGuard::mixed(const Incarnation& below) const {
  Incarnation now = below;
  now.local_opening = combined_local_opening(now.local_opening, opening_);
  return losses_.mixed(now);
}

task::Task<Result<void>> MapGuard::mend(task::CancelToken token) {
  while (!is_sound()) {
    const bool is_first = !std::exchange(is_mending_, true);
    if (is_first) {
      mended_.reset();
      gate_.spawn(reload());
    }
    const Result<void> waited = co_await mended_.wait(token);
    if (!waited) co_return waited;
    if (!outcome_) co_return outcome_;
  }
  co_return Result<void>();
}

// What runs ends first: it fails at the journal, or is done with the drives below.
task::Task<void> MapGuard::reload() {
  while (uses_ > 0) {
    unused_.reset();
    const Result<void> unused = co_await unused_.wait();
    CHECK(unused.has_value());
  }
  look();
  outcome_ = co_await owner_.reload_map();
  if (outcome_ && has_changed()) {
    outcome_ = fail(Errc::kIo, "the drive below was restarted again");
  }
  if (outcome_) {
    is_lost_ = false;
  } else if (!owner_.map_journal().has_lost()) {
    owner_.map_journal().lose();
  }
  is_mending_ = false;
  mended_.set();
}

std::vector<Concern> MapGuard::concerns() const {
  if (!is_lost_ || outcome_) return {};
  return {{.health = Health::kFailing,
           .code = "map_lost",
           .what = fmt::format("the drive below lost writes that were not flushed, and its map "
                               "cannot be read again: {}; every request tries to",
                               outcome_.error().text())}};
}

MapGuard::Use::Use(MapGuard& guard) : guard_(guard) { ++guard_.uses_; }

MapGuard::Use::~Use() {
  if (--guard_.uses_ == 0) guard_.unused_.set();
}

Result<void> MapGuard::Use::judge(const Result<void>& done) {
  if (guard_.is_sound() || (!done && done.error() != Errc::kMismatch)) return done;
  return fail(Errc::kIo, "the drive below lost writes that were not flushed");
}

}  // namespace cairn::drive
