// SPDX-License-Identifier: Apache-2.0
// LegLabels: the label that the legs of a redundant service share, and how all of them come to have
// the newest one.
//
// Facts about legs change first and are counted; save() makes them durable. A label that is on some
// legs only is finished as it is before the next one: so no good leg comes to lack two of them
// (leg.h), and none that has it is called stale by another one of the same generation.
//
// A Label is one of leg_search.h whose membership() can be written to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/error.h"
#include "service/raid/leg.h"
#include "service/raid/legs.h"
#include "service/raid/legs_claim.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

template <class Label>
class LegLabels {
 public:
  class Owner {
   public:
    // Durable on success. `label` lives until then.
    virtual task::Task<Result<void>> write_label_on(size_t leg, const Label& label) = 0;
    // A leg did not take its label. True: it is lost now, and labels are complete without it.
    virtual bool give_up(size_t leg, const Error& why) = 0;
    // What the next label says besides the members.
    virtual void describe(Label& /*label*/) const {}

   protected:
    ~Owner() = default;
  };

  // `label` is the newest on the legs, or the first; the next one names another writer. All outlive
  // it.
  LegLabels(Owner& owner, Legs& legs, LegsClaim& claim, Label label, uint64_t writer)
      : owner_(owner), legs_(legs), claim_(claim), label_(label) {
    label_.writer = writer;
  }

  // The newest, which may be on some legs only. What never changes of it holds always.
  const Label& label() const { return label_; }
  // A fact has changed that labels tell.
  void note_change() { ++changes_; }
  bool are_saved() const { return saved_ == changes_; }

  // Done when the newest facts are durable on every good leg. kDenied: another opening has them.
  task::Task<Result<void>> save() {
    if (are_saved()) co_return Result<void>();
    const Result<void> turn = co_await turn_.acquire();
    CHECK(turn.has_value());
    Result<void> saved = co_await claim_.check(label_.generation);
    while (saved && !are_saved()) {
      if (held_ == saved_) make_next();
      saved = co_await write_on_all();
      if (!saved) break;
      claim_.claimed(label_.generation);
      saved_ = held_;
    }
    turn_.release();
    co_return saved;
  }

  // Good legs that lack the newest label get it as it was found, before the first of this opening.
  // It names who wrote it: an opening that is refused after this has taken nothing from anybody.
  task::Task<Result<void>> level(Label newest) {
    if (std::ranges::none_of(legs_, &Leg::lacks_label)) co_return Result<void>();
    const Result<void> owned = co_await claim_.check(newest.generation);
    if (!owned) co_return owned;
    for (size_t leg = 0; leg < legs_.size(); ++leg) {
      if (!legs_[leg].lacks_label || legs_[leg].state != Leg::State::kGood) continue;
      const Result<void> written = co_await owner_.write_label_on(leg, newest);
      if (!written && !owner_.give_up(leg, written.error())) co_return written;
      legs_[leg].lacks_label = false;
    }
    co_return Result<void>();
  }

  // A leg that is to be copied to gets the label that the others have, and each from here on. So it
  // lacks at most one, that which calls it good, when a crash comes between two legs. With more it
  // would have to be copied as a whole.
  task::Task<Result<void>> bring_up_to_date(size_t leg) {
    const Result<void> turn = co_await turn_.acquire();
    CHECK(turn.has_value());
    const Result<void> written = co_await owner_.write_label_on(leg, label_);
    turn_.release();
    co_return written;
  }

 private:
  void make_next() {
    ++label_.generation;
    held_ = changes_;
    for (size_t i = 0; i < legs_.size(); ++i) {
      if (legs_[i].stale_from == Leg::kUnsaved) legs_[i].stale_from = label_.generation;
      label_.membership()[i] = {.id = legs_[i].id, .stale_from = legs_[i].stale_from};
    }
    owner_.describe(label_);
  }

  // Legs that are copied to come last: with labels that those with all data lack, the next start
  // would not believe these. A leg that took another's place since is named by the next label.
  task::Task<Result<void>> write_on_all() {
    uint64_t copied_to = 0;  // legs, by bit
    for (size_t leg = 0; leg < legs_.size(); ++leg) {
      if (legs_[leg].state == Leg::State::kCopying) copied_to |= uint64_t{1} << leg;
    }
    for (const uint64_t others : {0, 1}) {
      for (size_t leg = 0; leg < legs_.size(); ++leg) {
        const bool has_place = legs_[leg].id == label_.membership()[leg].id;
        if ((copied_to >> leg & 1) != others || !legs_.is_written(leg) || !has_place) continue;
        const Result<void> written = co_await owner_.write_label_on(leg, label_);
        if (!written && !owner_.give_up(leg, written.error())) co_return written;
      }
    }
    co_return Result<void>();
  }

  Owner& owner_;
  Legs& legs_;
  LegsClaim& claim_;
  Label label_;
  uint64_t changes_ = 1;  // of facts; the first is the writer
  uint64_t held_ = 0;     // of them, those that label_ has
  uint64_t saved_ = 0;    // and those that are durable on every good leg
  task::Semaphore turn_{1};
};

}  // namespace cairn::drive
