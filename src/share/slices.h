// SPDX-License-Identifier: Apache-2.0
// Slices: what a client may use of one drive (Flint, Algorithm 3). No I/O.
//
// A slice is used evenly over its epoch, at most kAhead (or kAskMin) before its time: clients that
// all began their epoch by sending what they have would only wait in the drive, and the view would
// take that for a drive which is overloaded.
//
// A request goes when there is room in the slice; it may go beyond it once, and the next slice is
// so much smaller: a request that is larger than a slice is sent too. What is left of a slice is
// gone when its epoch is.
//
// An auction that answers nothing for kIdleEpochs is away. Then the client goes on with what it
// used at the last, and from epoch to epoch comes nearer to an equal share. All clients of a drive
// do, so that together they ask no more of it than before. When the auction is back, what was used
// in the epoch that is under way counts against the first slice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/units.h"
#include "share/slice_messages.h"
#include "share/types.h"
#include "view/sliding.h"

namespace cairn::share {

class Slices {
 public:
  // A client that is short of room asks again after so long.
  static constexpr Duration kAskAgain = 2_ms;
  // Who has nothing under way and began nothing for so long gives back what it has of the epoch.
  static constexpr Duration kGiveBack = 10_ms;
  // What is asked for at once, at least: not each request is worth asking.
  static constexpr uint64_t kAskMin = 128_KiB;
  static constexpr Duration kAhead = 2_ms;
  // Each epoch without an auction takes so much of the way to an equal share: half in a second.
  static constexpr int64_t kDecay = 32;

  explicit Slices(DriveId drive) : drive_(drive) {}

  // Whether a request of so many weighted bytes may go now. If so it has its room.
  bool take(uint64_t cost, Time now);
  // The same for one of at most kAskMin before which nothing waits or is under way, of a client
  // that owes nothing: nobody is asked before it, and it is paid back from the next slice.
  bool borrow(uint64_t cost, Time now);
  // A request that had room is done, however it ended.
  void done() { under_way_ -= std::min<uint64_t>(under_way_, 1); }
  // One that had room was not sent after all.
  void give_up(uint64_t cost) {
    done();
    spent_ -= std::min(spent_, cost);
    used_ -= std::min(used_, cost);
  }
  // What waits for room: weighted bytes, of which so many are to be written and read.
  void set_waiting(uint64_t cost, uint64_t in, uint64_t out);

  // What to ask now, if anything. It is answered by granted(), or not at all; then ask again when
  // it says so.
  std::optional<SliceRequest> request(Time now);
  // When request() may have something.
  Time due_at() const;
  void granted(const SliceGrant& grant, Time now);

  // Goes on by itself, for no auction answers.
  bool is_alone() const { return is_alone_; }
  uint64_t room() const {
    const uint64_t gone = spent_ + given_back_;
    return gone < granted_ ? granted_ - gone : 0;
  }
  // There is some, though not yet.
  bool is_early(Time now) const {
    // What it does alone is late enough: nobody lends it what it did not use in time.
    return !is_alone_ && room() > 0 && spent_ + given_back_ >= released(now);
  }

 private:
  void spend(uint64_t cost, Time now);
  // Of what was granted, what may be used by now.
  uint64_t released(Time now) const;
  bool is_at_rest() const { return waiting_ == 0 && under_way_ == 0 && !is_alone_; }
  // The slice is over; what was used beyond it is kept.
  void turn(uint64_t granted);
  void go_alone(Time now);

  DriveId drive_;
  uint64_t auction_ = 0;
  uint64_t epoch_ = 0;
  uint64_t before_ = 0;
  uint64_t spent_before_ = 0;
  uint64_t granted_ = 0;
  uint64_t spent_ = 0;  // of it, and perhaps more
  uint64_t given_back_ = 0;
  uint64_t under_way_ = 0;  // requests
  uint64_t used_ = 0;       // in this epoch
  uint64_t used_before_ = 0;
  uint64_t equal_ = 0;
  uint64_t waiting_ = 0;
  uint32_t in_permille_ = 0;
  uint32_t out_permille_ = 1000;
  bool was_short_ = false;  // in this epoch
  bool was_short_before_ = false;
  bool is_alone_ = false;
  uint64_t share_ = 0;  // of an epoch, when alone
  view::Ewma usual_;    // what it uses in an epoch
  Time ends_{};         // the epoch
  Time asked_{};
  Time took_{};
  Time unanswered_ = Time::never();  // since when
  bool must_tell_ = false;           // the auction believes that more is wanted than is
};

}  // namespace cairn::share
