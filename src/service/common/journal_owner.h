// SPDX-License-Identifier: Apache-2.0
// JournalOwner: whose state a journal keeps (journal.h).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "service/common/journal_format.h"

namespace cairn::drive {

// A checkpoint is the state in parts, each as it was when it was saved, and between two parts the
// changes that were added meanwhile, so requests go on while it is written. Each part of the state
// has its place in an order of the owner's. Then replay() meets
//   - changes to what a later part tells of: on a state that lacks only what later parts tell;
//   - parts that tell once more what such a change has told.
// An owner whose records set the value of a key need not care. One whose records depend on what
// they change leaves out changes to parts that are still to come (SnapshotDrive).
class JournalOwner {
 public:
  // One record, of a checkpoint or a change, oldest first. It comes from a drive: check it. An
  // error refuses the journal.
  virtual Result<void> replay(Bytes record) = 0;
  // All records were replayed. An error refuses the journal.
  virtual Result<void> check_replayed() const { return {}; }
  // The part of the state that begins at `from`, as it is now, as records from which replay() makes
  // it again: a bounded number of them, whatever the size of the state. 0 is the beginning.
  // Returns where the next part begins; none: this was the last.
  virtual std::optional<uint64_t> save(uint64_t from, JournalRecords& records) const = 0;

 protected:
  ~JournalOwner() = default;
};

}  // namespace cairn::drive
