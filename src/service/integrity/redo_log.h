// SPDX-License-Identifier: Apache-2.0
// RedoLog: what atomic is about to write, kept until it is in place. Internal to atomic.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "drive/drive.h"
#include "drive/losses.h"
#include "drive/scratch.h"
#include "env/env.h"
#include "service/common/claim.h"
#include "service/integrity/atomic_format.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

// Fills up from its start and is emptied as a whole: when all of it is in place and flushed, a
// label of the next generation says so. The drive below outlives it; used on one core.
class RedoLog {
 public:
  struct Counts {
    uint64_t writes = 0;
    uint64_t batches = 0;   // in which they were written
    uint64_t emptied = 0;   // times
    uint64_t replayed = 0;  // writes put in place when it was opened
  };

  // `label` is in force on the drive; its body is the layout. Blocks are of the data. Flushes that
  // fail are added to `losses`.
  RedoLog(env::Env& env, Drive& below, Label label, const AtomicLayout& layout, uint64_t unit,
          Losses& losses);

  // Puts in place what a crash left in the log. Before anything else, once. kCorrupt: it holds what
  // nobody wrote, and nothing was changed; or an error of the drive below.
  task::Task<Result<void>> recover();

  // On success these blocks are in the log, durably; the caller, who has them alone, writes them in
  // place and says so by placed(). At most the unit.
  task::Task<Result<void>> append(uint64_t first, Bytes data);
  void placed(const Result<void>& written);

  // Whether the log may hold any of these blocks: what is written there must go through the log, or
  // wait for empty().
  bool holds(uint64_t first, uint64_t blocks) const;
  // Whether something could not be put in place: what the log holds must not be read before empty()
  // succeeded.
  bool is_broken() const { return is_broken_; }
  // Looks whether the drive below was restarted: what it lost is put in place again.
  void notice_losses();
  bool has_lost() const { return watch_.has_changed(below_); }
  // The drive below may have lost what was put in place and not flushed.
  void lose() { is_broken_ = is_broken_ || batches_ > 0; }
  // Ends when the log is empty: everything in it is in place, durably.
  task::Task<Result<void>> empty();

  // After the last append and placed().
  task::Task<void> close();

  // Before a change that does not go through the log. kDenied: somebody else has the drive now.
  Claim& claim() { return claim_; }

  const Counts& counts() const { return counts_; }
  uint64_t used_blocks() const { return used_; }

 private:
  struct Entry : ListHook<Entry> {
    uint64_t first = 0;
    Bytes data;
    Result<void> result;
    task::Event done;
  };
  using Entries = List<Entry, Entry>;

  Drive& below() { return below_; }
  uint32_t block_size() const { return label_.block_size; }
  AtomicBatch::Name name_of(uint64_t index) const {
    return {.id = label_.id, .generation = label_.generation, .index = index};
  }
  uint64_t blocks_of(const Entry& entry) const { return entry.data.size() / block_size(); }

  task::Task<void> commit_all();
  AtomicBatch take_batch(Entries& taken);
  task::Task<Result<void>> commit(AtomicBatch& batch, Entries& entries);
  task::Task<Result<void>> write_batch(AtomicBatch& batch, Entries& entries);
  // The caller has the turn.
  task::Task<Result<void>> empty_now();
  // What it holds is in place, durably.
  task::Task<Result<void>> settle();
  // How many batches there are, in `found`.
  task::Task<Result<void>> find_batches(uint64_t& found);
  task::Task<Result<void>> replay(uint64_t batches);
  task::Task<Result<AtomicBatch>> read_batch(uint64_t at, uint64_t index);
  task::Task<Result<void>> check_content(const AtomicBatch& batch, uint64_t at,
                                         MutableBytes memory);
  task::Task<Result<void>> place(const AtomicBatch& batch, uint64_t at, MutableBytes memory);
  Result<Scratch> chunk_memory();

  env::Env& env_;
  Drive& below_;
  Label label_;
  Claim claim_;
  const AtomicLayout layout_;
  const uint64_t unit_;
  const uint64_t batch_blocks_max_;
  Losses& losses_;
  Watch watch_;

  Entries waiting_;
  task::Semaphore turn_{1};  // to write the log, or to empty it
  bool committer_runs_ = false;
  uint64_t used_ = 0;     // blocks of the log
  uint64_t batches_ = 0;  // in it
  uint64_t unplaced_ = 0;
  task::Event all_placed_;
  std::unordered_set<uint64_t> units_;  // of the data, of which it may hold blocks
  bool is_broken_ = false;
  bool is_doubtful_ = false;  // a write of the log or label failed: nothing more before empty_now()
  Counts counts_;
  task::Gate gate_;
};

}  // namespace cairn::drive
