// SPDX-License-Identifier: Apache-2.0
// Continuity: whether a target still has its host's writes, as far as the host can know.
//
// A target that reports its incarnation (docs/fabric.md) is believed: another medium is another
// drive, and another opening of the same medium may lack unflushed writes. For a target that does
// not report it, all unflushed writes are in doubt once all its sessions were lost.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "drive/drive.h"

namespace cairn::fabric {

class Continuity {
 public:
  // What a flush has to cover: taken when it begins.
  struct Mark {
    uint64_t changes = 0;
    uint64_t told = 0;
  };

  // A change that is not durable has completed, on a path whose target reported this opening. A
  // change of a target that is gone by now is lost already.
  void changed(uint64_t opening);
  Mark mark() const { return {.changes = changes_, .told = told_}; }
  // The target has flushed. kIo: writes that this flush should cover were lost. Each loss is
  // reported to all flushes that had begun before its first report, and then no more. Callers with
  // `knows_losses` learn of it by incarnation() and do not consume the report.
  Result<void> flushed(const Mark& mark, bool knows_losses = false);

  // No session is left to the target.
  void lost_touch() { is_out_of_touch_ = true; }
  // Whether what a target says can be of the medium that was opened.
  bool is_same_medium(const drive::Incarnation& now) const;
  // What a target says that has this medium, with a new session or in an old one.
  void reached(const drive::Incarnation& now);
  // Something else answers in its place, until it is reached again.
  void replace() { is_replaced_ = true; }
  bool is_replaced() const { return is_replaced_; }

  // For services above: another one once the medium is another, or something may be lost.
  drive::Incarnation incarnation() const;
  uint64_t losses() const { return losses_; }

 private:
  void lose();

  bool is_known_ = false;
  drive::Incarnation known_;  // as the target said last, of the medium that was opened
  uint64_t first_opening_ = 0;
  uint64_t changes_ = 0;  // that were not durable
  uint64_t covered_ = 0;  // of them, by a flush, or lost for certain
  uint64_t losses_ = 0;   // times that changes may be lost
  uint64_t told_ = 0;     // of them
  bool is_out_of_touch_ = false;
  bool is_replaced_ = false;
};

}  // namespace cairn::fabric
