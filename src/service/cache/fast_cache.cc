// SPDX-License-Identifier: Apache-2.0
// What a cache on a fast drive does with each request.
#include "service/cache/fast_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "drive/pieces.h"
#include "drive/scatter.h"
#include "drive/stable_memory.h"
#include "task/deadline.h"

namespace cairn::drive {

namespace {

constexpr Duration kFastRest = 5_s;  // it is left alone for so long after it failed

}  // namespace

task::Task<Result<void>> FastCache::run(DriveOp& op) {
  // What is kept never was where somebody else could write, and both drives get the same bytes.
  // Written back, a block goes to one drive.
  const bool looks_once =
      op.request.kind == Kind::kCompare || (options_.is_back && op.request.kind == Kind::kWrite);
  if (has_unstable_memory(op.request) && !looks_once) return run_on_copy(env_, *this, op);
  return run_guarded(op);
}

task::Task<Result<void>> FastCache::run_guarded(DriveOp& op) {
  const uint64_t told = guard_.told();
  const uint64_t slow_told = slow_losses_.told();
  forget_clean_if_lost();
  if (has_newer() && !guard_.is_sound()) {
    const Result<void> mended = co_await guard_.mend(op.token());
    if (!mended) co_return mended;
  }
  MapGuard::Use use(guard_);
  const Result<void> done = co_await dispatch(op);
  forget_clean_if_lost();
  const Result<void> judged = has_newer() ? use.judge(done) : done;
  if (op.request.kind != Kind::kFlush || op.token().requested()) co_return judged;
  co_return slow_losses_.tell(slow_told, guard_.tell(told, judged, op.token()));
}

task::Task<Result<void>> FastCache::dispatch(DriveOp& op) {
  switch (op.request.kind) {
    case Kind::kFlush:
      return flush(op.token());
    case Kind::kRead:
      return read(op);
    case Kind::kCompare:
      return compare(op);
    case Kind::kDiscard:
    case Kind::kWriteZeroes:
      return erase(op);
    default:
      return change(op);
  }
}

task::Task<Result<FastCache::Hold>> FastCache::hold(Ranges::Mode mode, Span blocks,
                                                    task::CancelToken token) {
  auto made = std::make_unique<Ranges::Hold>(ranges_, mode, blocks.first, blocks.count, token);
  const Result<void> held = co_await *made;
  if (!held) co_return fail(held.error());
  co_return std::move(made);
}

// For a change. The slow drive is asked: the fast one may be away.
task::Task<Result<FastCache::Hold>> FastCache::hold_mine(Span blocks, task::CancelToken token) {
  if (slow_claim_.is_due()) {
    const Result<void> mine = co_await slow_claim_.check(token);
    if (!mine) co_return fail(mine.error());
  }
  co_return co_await hold(Ranges::Mode::kExclusive, blocks, token);
}

// What was written to the fast drive, and what went past it. A fast drive that has nothing newer
// fails nobody.
task::Task<Result<void>> FastCache::flush(task::CancelToken token) {
  if (has_newer()) {
    const Result<void> synced = co_await journal_->sync(token);
    if (!synced) co_return synced;
  }
  const uint64_t writes = slow_writes_;
  if (slow_flushed_ >= writes) co_return Result<void>();
  const Result<void> flushed = co_await slow().flush(token);
  slow_losses_.flushed(flushed, token);
  if (flushed) slow_flushed_ = std::max(slow_flushed_, writes);
  co_return flushed;
}

task::Task<Result<void>> FastCache::read(DriveOp& op) {
  const Span blocks{op.request.lba.value(), op.request.blocks};
  Result<Hold> held = co_await hold(Ranges::Mode::kShared, blocks, op.token());
  if (!held) co_return fail(held.error());
  Span lacking;
  const Result<void> done = co_await fetch(op.request, op.data(), op.token(), lacking);
  if (done && lacking.count > 0) {
    const size_t offset = (lacking.first - blocks.first) * geometry_.block_size;
    fill_later(lacking, op.data(), offset, std::move(*held));
  }
  co_return done;
}

// From the slow drive what lacks, from the first such block to the last; then over it what the fast
// one has.
task::Task<Result<void>> FastCache::fetch(Request request, Memory memory, task::CancelToken token,
                                          Span& lacking) {
  const Span blocks{request.lba.value(), request.blocks};
  uint64_t end = 0;
  std::vector<Kept> parts;
  const bool asks_fast = may_ask_fast();
  for_each_part(blocks, [&](const Part& part) {
    const uint32_t slot = find(part.line);
    const uint64_t valid = slot == Lru::kNone ? 0 : slots_[slot].valid & part.mask();
    const uint64_t dirty = slot == Lru::kNone ? 0 : slots_[slot].dirty & valid;
    const uint64_t there = asks_fast ? valid : dirty;
    const uint64_t lack = part.mask() & ~there;
    hits_ += static_cast<uint64_t>(std::popcount(there));
    misses_ += static_cast<uint64_t>(std::popcount(lack));
    if (lack != 0) {
      const uint64_t start = part.line * line_blocks();
      if (end == 0) lacking.first = start + static_cast<uint64_t>(std::countr_zero(lack));
      end = start + 64 - static_cast<uint64_t>(std::countl_zero(lack));
    }
    if (there == 0) return;
    lru_.use(slot);
    ++slots_[slot].users;
    parts.push_back(
        {.part = part, .clean = there & ~dirty, .dirty = dirty, .forgotten = forgotten_});
  });
  lacking.count = end == 0 ? 0 : end - lacking.first;
  request.kind = Kind::kRead;
  request.durable = false;
  request.copy = 0;
  Result<void> done;
  if (lacking.count > 0) {
    Pieces piece;
    piece.add(memory, (lacking.first - blocks.first) * geometry_.block_size,
              lacking.count * geometry_.block_size);
    Request below = request;
    below.lba = slow_lba(lacking.first);
    below.blocks = lacking.count;
    done = co_await slow().submit(below, piece.all(), {}, token);
  }
  if (parts.empty()) co_return done;
  Join join;
  for (const Kept& kept : parts) {
    join.add();
    gate().spawn(fetch_part(kept, request, memory, token, join));
  }
  const Result<void> all = co_await join.all();
  co_return done ? all : done;
}

// Whoever calls it has made itself a user of the slot.
task::Task<void> FastCache::fetch_part(Kept kept, Request request, Memory memory,
                                       task::CancelToken token, Join& join) {
  const Part& part = kept.part;
  const uint32_t slot = find(part.line);
  std::vector<Part> runs;
  const auto add = [&](uint32_t first, uint32_t count) {
    runs.push_back({.line = part.line, .first = first, .count = count, .at = part.at});
  };
  for_each_run(kept.dirty, add);
  for_each_run(kept.clean, add);
  Result<void> done;
  for (const Part& run : runs) {
    Pieces piece;
    piece.add(memory, (part.at + run.first - part.first) * geometry_.block_size,
              run.count * geometry_.block_size);
    request.lba = fast_lba(slot, run.first);
    request.blocks = run.count;
    Result<void> one;
    if ((run.mask() & kept.clean) != 0) {
      one = co_await fetch_clean(kept, slot, run, request, piece.all(), token);
    } else {
      one = co_await fast().submit(request, piece.all(), {}, token);
    }
    if (!one) done = one;
  }
  --slots_[slot].users;
  join.finish(done);
}

// Blocks that both drives have: from the fast one, or where it fails from the slow one.
task::Task<Result<void>> FastCache::fetch_clean(const Kept& kept, uint32_t slot, Part run,
                                                Request request, Memory memory,
                                                task::CancelToken token) {
  Result<void> done;
  if (!has_lost_since(kept.forgotten)) {
    task::Deadline deadline(env_, env_.now() + kFastTimeout, token);
    done = co_await fast().submit(request, memory, {}, deadline.token());
    if (done && !has_lost_since(kept.forgotten)) co_return done;
    if (token.requested()) co_return fail(token.error());
    if (!done) fast_failed();
  }
  slots_[slot].valid &= ~(run.mask() & ~slots_[slot].dirty);
  request.lba = slow_lba(run.line * line_blocks() + run.first);
  done = co_await slow().submit(request, memory, {}, token);
  co_return done;
}

void FastCache::fast_failed() {
  ++fast_errors_;
  fast_rests_until_ = env_.now() + kFastRest;
  env_.trace().record("cache.fast_error", fast_errors_, 0);
}

// Whether the blocks differ from the request's memory; the caller holds them.
task::Task<Result<bool>> FastCache::differs(DriveOp& op) {
  const size_t size = op.request.blocks * geometry_.block_size;
  Result<Scratch> memory = Scratch::make(env_, size);
  if (!memory) co_return fail(memory.error());
  const MutableBytes whole[] = {memory->bytes()};
  Request request = op.request;
  request.unstable_memory = false;
  Span lacking;
  const Result<void> done = co_await fetch(request, whole, op.token(), lacking);
  if (!done) co_return fail(done.error());
  co_return !holds(op.data(), 0, memory->bytes());
}

task::Task<Result<void>> FastCache::compare(DriveOp& op) {
  const Span blocks{op.request.lba.value(), op.request.blocks};
  Result<Hold> held = co_await hold(Ranges::Mode::kShared, blocks, op.token());
  if (!held) co_return fail(held.error());
  const Result<bool> different = co_await differs(op);
  if (!different) co_return fail(different.error());
  if (*different) co_return fail(Errc::kMismatch, "compare");
  co_return Result<void>();
}

task::Task<Result<void>> FastCache::change(DriveOp& op) {
  const Span blocks{op.request.lba.value(), op.request.blocks};
  Result<Hold> held = co_await hold_mine(blocks, op.token());
  if (!held) co_return fail(held.error());
  Memory memory = op.data();
  if (op.request.kind == Kind::kCompareAndWrite) {
    const Result<bool> different = co_await differs(op);
    if (!different) co_return fail(different.error());
    if (*different) co_return fail(Errc::kMismatch, "compare and write");
    memory = op.second();
  }
  const Result<void> done = co_await write(op, memory, std::move(*held));
  co_return done;
}

task::Task<Result<void>> FastCache::write(DriveOp& op, Memory memory, Hold hold) {
  const Span blocks{op.request.lba.value(), op.request.blocks};
  Request request = op.request;
  request.kind = Kind::kWrite;
  if (!options_.is_back && !is_dirty(blocks)) {
    forget(blocks);
    request.lba = slow_lba(blocks.first);
    Result<void> done = co_await write_slow(request, memory, op.token());
    if (done) fill_later(blocks, memory, 0, std::move(hold));
    if (done && request.durable) done = co_await journal_->commit(op.token());
    co_return done;
  }
  Join join;
  for_each_part(blocks, [&](const Part& part) {
    join.add();
    gate().spawn(write_part(part, request, memory, op.token(), join));
  });
  Result<void> done = co_await join.all();
  if (done && request.durable) done = co_await journal_->commit(op.token());
  wake_cleaner();
  co_return done;
}

task::Task<void> FastCache::write_part(Part part, Request request, Memory memory,
                                       task::CancelToken token, Join& join) {
  Pieces piece;
  piece.add(memory, part.at * geometry_.block_size, part.count * geometry_.block_size);
  request.blocks = part.count;
  const uint32_t slot = options_.is_back ? find_or_take(part.line) : find(part.line);
  const bool goes_fast = slot != Lru::kNone && (options_.is_back || slots_[slot].dirty != 0);
  Result<void> done;
  if (goes_fast) {
    done = co_await write_fast(slot, part, request, piece.all(), token);
  } else {
    const uint64_t first = part.line * line_blocks() + part.first;
    forget({first, part.count});
    ++around_;
    request.lba = slow_lba(first);
    done = co_await write_slow(request, piece.all(), token);
  }
  join.finish(done);
}

// Blocks that were dirty already are overwritten where they are: after a crash each is old or new.
task::Task<Result<void>> FastCache::write_fast(uint32_t slot, Part part, Request request,
                                               Memory memory, task::CancelToken token) {
  Slot& here = slots_[slot];
  ++here.users;
  ++here.version;
  lru_.use(slot);
  request.lba = fast_lba(slot, part.first);
  Result<void> done;
  if ((here.filling & part.mask()) != 0) done = co_await fills_end(here, part.mask(), token);
  if (done) done = co_await fast().submit(request, memory, {}, token);
  --here.users;
  if (!done) {
    here.valid &= ~(part.mask() & ~here.dirty);
    co_return done;
  }
  here.valid |= part.mask();
  if ((part.mask() & ~here.dirty) != 0) {
    const auto needs = request.durable ? Journal::Needs::kNothing : Journal::Needs::kData;
    set_dirty(slot, here.dirty | part.mask(), needs);
  }
  co_return done;
}

// A record that says that the fast drive has nothing newer may still be on its way: whoever
// promises that this survives a crash commits the journal too.
task::Task<Result<void>> FastCache::write_slow(Request request, Memory memory,
                                               task::CancelToken token) {
  const Result<void> done = co_await slow().submit(request, memory, {}, token);
  ++slow_writes_;
  co_return done;
}

// The slow drive first, for good: a record that lets go of newer data must not uncover older.
task::Task<Result<void>> FastCache::erase(DriveOp& op) {
  const Span blocks{op.request.lba.value(), op.request.blocks};
  Result<Hold> held = co_await hold_mine(blocks, op.token());
  if (!held) co_return fail(held.error());
  forget(blocks);
  // What the cleaner has just copied down is older than this.
  for_each_dirty_part(blocks, [this](const Part& part) { ++slots_[find(part.line)].version; });
  Request request = op.request;
  request.lba = slow_lba(blocks.first);
  const uint64_t losses = slow_losses_.count();
  Watch slow_watch;
  slow_watch.look(slow());
  Result<void> done = co_await write_slow(request, {}, op.token());
  if (done && is_dirty(blocks)) {
    done = co_await slow().flush(op.token());
    slow_losses_.flushed(done, op.token());
    if (done && (losses != slow_losses_.count() || slow_watch.has_changed(slow()))) {
      done = fail(Errc::kIo, "the slow drive lost writes that were not flushed");
    }
  }
  if (!done) co_return done;
  std::vector<Part> parts;
  for_each_dirty_part(blocks, [&](const Part& part) { parts.push_back(part); });
  for (const Part& part : parts) {
    const uint32_t slot = find(part.line);
    if ((slots_[slot].dirty & part.mask()) == 0) continue;
    set_dirty(slot, slots_[slot].dirty & ~part.mask(), Journal::Needs::kNothing);
    slots_[slot].valid &= ~part.mask();
  }
  if (op.request.durable) done = co_await journal_->commit(op.token());
  co_return done;
}

}  // namespace cairn::drive
