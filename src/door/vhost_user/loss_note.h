// SPDX-License-Identifier: Apache-2.0
// LossNote: whether a guest counts on writes that were lost with a server that was killed.
//
// A guest keeps running when its server dies, and never asks again for what had completed; but what
// it had not flushed may have been in that server's memory, the map of a thin drive for instance.
// So a record in memory that outlives the server says whether there is such a thing, and of which
// incarnation of the drive. The next server compares, and tells the guest by its next flush, once:
// as a disk does that lost its power.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/error.h"
#include "door/vhost_user/inflight_format.h"
#include "drive/drive.h"

namespace cairn::door::vhost_user {

// On one core. The front end may write anything to the record: it deceives its own guest at worst.
class LossNote {
 public:
  // `server` is drawn by each, and not 0. The drive outlives it.
  LossNote(const drive::Drive& drive, uint64_t server) : drive_(drive), server_(server) {}

  // From now on the record is there; its memory stays until detach(). True: something may be lost,
  // and the next flush will say so.
  bool attach(MutableBytes record);
  // The guest begins anew, or has gone.
  void detach();

  // A change that is not durable has completed: before the guest is told.
  void changed() {
    ++changes_;
    if (state_ == LossState::kFlushed) note(LossState::kUnflushed);
  }

  // What a flush has to cover: taken when it begins.
  struct Mark {
    uint64_t changes = 0;
    uint64_t told = 0;
  };
  Mark mark() const { return {.changes = changes_, .told = told_}; }
  // The drive's flush has ended so, and the guest is told what this returns; one that is done again
  // by the next server has not ended. A loss is told to all whose flush had begun before it was
  // told first, and then no more.
  Result<void> flushed(const Mark& mark, const Result<void>& done);

  // The guest has turned the drive's cache off, or on again. Front ends do not say so again to the
  // next server, and then what completes would not be durable any more.
  void set_through(bool is_through);
  bool is_through() const { return is_through_; }

  // Whether there is something that no flush covers.
  bool has_unflushed() const { return state_ == LossState::kUnflushed; }
  // A flush that the guest did not ask for has ended so.
  void flushed_unasked(const Mark& mark, const Result<void>& done);

 private:
  void note(LossState state);
  void set(size_t offset, uint64_t value);
  void cover(uint64_t changes);

  const drive::Drive& drive_;
  const uint64_t server_;
  MutableBytes record_;  // empty: there is none
  LossState state_ = LossState::kFlushed;
  bool is_through_ = false;
  uint64_t changes_ = 0;
  uint64_t covered_ = 0;  // of them
  uint64_t losses_ = 0;
  uint64_t told_ = 0;  // of them
};

}  // namespace cairn::door::vhost_user
