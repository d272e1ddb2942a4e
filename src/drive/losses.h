// SPDX-License-Identifier: Apache-2.0
// Losses: how often writes that were not flushed may have been lost below a service, and whether
// whoever flushes the service knows.
//
//   const uint64_t told = losses.told();          // when a flush begins
//   ... flush the drive below ...
//   co_return losses.tell(told, done);
//
// A flush that the service did for itself and that failed counts too: nobody else would hear of it.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/rng.h"
#include "drive/drive.h"
#include "task/cancel.h"

namespace cairn::drive {

class Losses {
 public:
  void add() { ++count_; }
  // A flush of the drive below has ended so. One that was given up says nothing.
  void flushed(const Result<void>& done, const task::CancelToken& token = {}) {
    if (!done && !token.requested()) add();
  }
  uint64_t count() const { return count_; }
  uint64_t told() const { return told_; }
  // What a flush answers that began when so many had been told. Each loss is told to all whose
  // flush had begun before it was told first, and then no more.
  Result<void> tell(uint64_t told, const Result<void>& done) {
    if (told == count_) return done;
    told_ = count_;
    if (!done) return done;
    return fail(Errc::kIo, "the drive below lost writes that were not flushed");
  }

  // The incarnation of a service whose blocks may change with a loss.
  Incarnation mixed(Incarnation below) const {
    if (count_ == 0) return below;
    below.opening = mix64(below.opening + count_) | 1;
    if (below.local_opening != 0) below.local_opening = mix64(below.local_opening + count_) | 1;
    return below;
  }

 private:
  uint64_t count_ = 0;
  uint64_t told_ = 0;
};

// Whether a drive may have lost what was not flushed since it was looked at.
class Watch {
 public:
  void look(const Drive& drive) { known_ = drive.incarnation(); }
  bool has_changed(const Drive& drive) const {
    const Incarnation now = drive.incarnation();
    return now.opening != 0 && now != known_;
  }

 private:
  Incarnation known_;
};

}  // namespace cairn::drive
