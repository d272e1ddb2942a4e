// SPDX-License-Identifier: Apache-2.0
// FastCache: the cache on a fast drive of cache.h, which has the contract. Internal.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/units.h"
#include "drive/join.h"
#include "drive/ranges.h"
#include "drive/scratch.h"
#include "env/env.h"
#include "service/cache/fast_cache_format.h"
#include "service/cache/lru.h"
#include "service/common/journal.h"
#include "service/common/map_guard.h"
#include "service/common/service.h"
#include "service/common/service_drive.h"
#include "task/sync.h"
#include "task/timer.h"

namespace cairn::drive {

task::Task<Result<std::unique_ptr<Drive>>> open_fast_cache(ServiceParts parts);

// How long anybody waits for the fast drive where the slow one would do.
inline constexpr Duration kFastTimeout = 250_ms;

// The runs of ones in a mask of blocks.
template <class F>
void for_each_run(uint64_t mask, F visit) {
  for (uint32_t at = 0; mask != 0;) {
    const auto zeroes = static_cast<uint32_t>(std::countr_zero(mask));
    mask >>= zeroes;
    const auto ones = static_cast<uint32_t>(std::countr_one(mask));
    visit(at + zeroes, ones);
    mask = ones == 64 ? 0 : mask >> ones;
    at += zeroes + ones;
  }
}

struct FastCacheOptions {
  bool is_back = false;       // write-back; else write-through
  uint64_t dirty_target = 0;  // in percent of the slots
  bool drains = false;        // when it is closed
};

// What opening found: two drives that belong together.
struct FastCacheFound {
  Label slow_label;
  SlowState slow;
  Label fast_label;
  FastState fast;
};

class FastCache final : public ServiceDrive, private JournalOwner, MapOwner {
 public:
  FastCache(env::Env& env, std::vector<std::unique_ptr<Drive>> drives,
            const FastCacheOptions& options, FastCacheFound found);

  // Reads the journal, or makes a new one; then both labels say that the drives are in use. Once,
  // before any request.
  task::Task<Result<void>> begin(bool is_new);
  task::Task<void> close() override;

  Extent extent_at(Lba lba, uint64_t max) const override;
  // Another one too when its blocks are as they were some time before.
  Incarnation incarnation() const override {
    const Incarnation below = labelled_incarnation();
    return options_.is_back ? guard_.mixed(below) : guard_.losses().mixed(below);
  }
  std::vector<Fact> facts() const override;
  std::vector<Concern> concerns() const override;
  task::Task<std::expected<std::string, std::string>> tell(std::vector<std::string> args) override;

 private:
  using Kind = Request::Kind;
  using Memory = std::span<const MutableBytes>;
  using Hold = std::unique_ptr<Ranges::Hold>;
  struct Span {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  // Of a line, the blocks that a request is about.
  struct Part {
    uint64_t line = 0;
    uint32_t first = 0;  // in the line
    uint32_t count = 0;
    uint64_t at = 0;  // in the request
    uint64_t mask() const {
      return (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
    }
  };
  struct Slot {
    uint64_t valid = 0;       // blocks that are there
    uint64_t dirty = 0;       // of these, newer than on the slow drive
    uint64_t filling = 0;     // not there yet: a write that nobody waits for goes on
    uint64_t free_after = 0;  // the record that has to be durable before another line comes here
    uint32_t version = 0;     // counts writes
    uint32_t users = 0;       // requests on their way to its blocks
  };

  Drive& slow() { return below(0); }
  Drive& fast() { return below(1); }
  uint64_t line_blocks() const { return found_.fast.line_blocks; }
  Lba slow_lba(uint64_t block) const { return Lba(found_.slow.data_first + block); }
  Lba fast_lba(uint32_t slot, uint64_t block) const {
    return Lba(found_.fast.lines_first + slot * line_blocks() + block);
  }
  template <class F>
  void for_each_part(Span blocks, F visit) const;
  // Only the parts whose line is dirty, whatever the size of the range.
  template <class F>
  void for_each_dirty_part(Span blocks, F visit) const;

  // Requests (fast_cache.cc).
  task::Task<Result<void>> run(DriveOp& op) override;
  task::Task<Result<void>> run_guarded(DriveOp& op);
  task::Task<Result<void>> dispatch(DriveOp& op);
  task::Task<Result<Hold>> hold(Ranges::Mode mode, Span blocks, task::CancelToken token);
  task::Task<Result<Hold>> hold_mine(Span blocks, task::CancelToken token);
  task::Task<Result<void>> flush(task::CancelToken token);
  task::Task<Result<void>> read(DriveOp& op);
  task::Task<Result<void>> compare(DriveOp& op);
  task::Task<Result<void>> change(DriveOp& op);
  task::Task<Result<void>> fetch(Request request, Memory memory, task::CancelToken token,
                                 Span& lacking);
  // Of a part, the blocks that are on the fast drive.
  struct Kept {
    Part part;
    uint64_t clean = 0;  // the slow drive has them too
    uint64_t dirty = 0;
    uint64_t forgotten = 0;  // as much as when this was so
  };
  task::Task<void> fetch_part(Kept kept, Request request, Memory memory, task::CancelToken token,
                              Join& join);
  task::Task<Result<void>> fetch_clean(const Kept& kept, uint32_t slot, Part run, Request request,
                                       Memory memory, task::CancelToken token);
  task::Task<Result<bool>> differs(DriveOp& op);
  task::Task<Result<void>> write(DriveOp& op, Memory memory, Hold hold);
  task::Task<void> write_part(Part part, Request request, Memory memory, task::CancelToken token,
                              Join& join);
  task::Task<Result<void>> write_fast(uint32_t slot, Part part, Request request, Memory memory,
                                      task::CancelToken token);
  task::Task<Result<void>> write_slow(Request request, Memory memory, task::CancelToken token);
  task::Task<Result<void>> erase(DriveOp& op);
  // Whether the fast drive is asked for what the slow one has too. Not for a while after it failed
  // or kept somebody waiting.
  bool may_ask_fast() const { return env_.now() >= fast_rests_until_; }
  void fast_failed();

  // What is read is kept (fast_cache_fill.cc).
  void fill_later(Span blocks, Memory memory, size_t offset, Hold hold);
  struct FillTimer : task::Timer {
    using Timer::Timer;
    FastCache* cache = nullptr;
    Hold hold;
  };
  task::Task<void> fill(Span blocks, Scratch data, Hold hold);
  task::Task<Result<void>> fills_end(const Slot& slot, uint64_t mask, task::CancelToken token);

  // Lines and the journal (fast_cache_lines.cc).
  Result<void> replay(Bytes record) override;
  Result<void> check_replayed() const override;
  std::optional<uint64_t> save(uint64_t from, JournalRecords& records) const override;
  Journal& map_journal() override { return *journal_; }
  task::Task<Result<void>> reload_map() override;
  // Whether the fast drive has, or may have, what the slow one has not.
  bool has_newer() const;
  // Of lines that are dirty nowhere, a fast drive that lost something has nothing to tell.
  void forget_clean_if_lost();
  // Whether the fast drive lost something since so much had been forgotten.
  bool has_lost_since(uint64_t forgotten) const {
    return guard_.has_changed() || forgotten != forgotten_;
  }
  // kNone: it is not there, or there is no slot that may be taken.
  uint32_t find(uint64_t line) const { return lru_.find(line); }
  uint32_t find_or_take(uint64_t line);
  bool is_dirty(Span blocks) const;
  void forget(Span blocks);
  void set_dirty(uint32_t slot, uint64_t dirty, Journal::Needs needs);
  task::Task<Result<void>> free_slow();  // its label says that it has all

  // What runs in the background.
  uint64_t dirty_target() const;
  void wake_cleaner();
  task::Task<void> clean_to_target();
  // Every line that was dirty when it began; one that fails keeps no other from it.
  task::Task<Result<void>> drain();
  struct Round {
    uint64_t from = 0;    // the next line; the largest number: it is over
    Result<void> failed;  // the first line that could not be written
  };
  // Some dirty lines of a round, in order of address. An error: the drives keep no promises now.
  task::Task<Result<void>> clean(Round& round, size_t lines);
  struct Cleaned {
    uint64_t line = 0;
    uint32_t slot = 0;
    uint32_t version = 0;
    Result<void> result;
  };
  task::Task<void> copy_down(Cleaned& one, Join& join);

  env::Env& env_;
  const FastCacheOptions options_;
  FastCacheFound found_;
  Claim slow_claim_;
  Claim fast_claim_;
  Lru lru_;  // by line
  std::vector<Slot> slots_;
  std::set<uint64_t> dirty_lines_;
  std::unique_ptr<Journal> journal_;
  MapGuard guard_;      // of the fast drive's lines
  Losses slow_losses_;  // of the slow drive, by flushes
  Ranges ranges_;       // changes are alone with their blocks

  uint64_t slow_writes_ = 1;   // that went past the fast drive; one of a former life perhaps
  uint64_t slow_flushed_ = 0;  // so many of them
  bool cleaner_runs_ = false;
  bool is_closing_ = false;
  Round cleaning_;
  Time clean_again_;          // a round wrote nothing back: not before
  std::set<uint64_t> stuck_;  // dirty lines that the slow drive did not take
  Time fast_rests_until_;
  uint64_t fast_errors_ = 0;
  uint64_t forgotten_ = 0;  // times that all clean lines were
  size_t fills_ = 0;
  task::Event fill_ended_;
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
  uint64_t around_ = 0;
  uint64_t cleaned_ = 0;
};

template <class F>
void FastCache::for_each_part(Span blocks, F visit) const {
  for (uint64_t at = 0; at < blocks.count;) {
    const uint64_t block = blocks.first + at;
    Part part{.line = block / line_blocks(),
              .first = static_cast<uint32_t>(block % line_blocks()),
              .count = 0,
              .at = at};
    part.count = static_cast<uint32_t>(std::min(line_blocks() - part.first, blocks.count - at));
    visit(part);
    at += part.count;
  }
}

template <class F>
void FastCache::for_each_dirty_part(Span blocks, F visit) const {
  const uint64_t end = blocks.first + blocks.count;
  for (auto at = dirty_lines_.lower_bound(blocks.first / line_blocks());
       at != dirty_lines_.end() && *at * line_blocks() < end; ++at) {
    const uint64_t first = std::max(blocks.first, *at * line_blocks());
    const uint64_t last = std::min(end, (*at + 1) * line_blocks());
    visit(Part{.line = *at,
               .first = static_cast<uint32_t>(first % line_blocks()),
               .count = static_cast<uint32_t>(last - first),
               .at = first - blocks.first});
  }
}

}  // namespace cairn::drive
