// SPDX-License-Identifier: Apache-2.0
// How a mirror serves requests.
#include "service/raid/mirror_drive.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "drive/copy_blocks.h"
#include "drive/scratch.h"
#include "drive/stable_memory.h"

namespace cairn::drive {

namespace {

// How often legs are asked for blocks before a reader is told that it cannot have them.
constexpr size_t kSettleAttempts = 12;

}  // namespace

MirrorDrive::MirrorDrive(env::Env& env, MirrorOptions options, MirrorFound found, LateDrives* late,
                         Buffer label_block, Buffer bitmap_block)
    : ServiceDrive({}),
      env_(env),
      options_(options),
      legs_(std::move(found.legs)),
      opening_(env.rng().next() | 1),
      primary_(found.label.primary),
      intent_(*this, found.marked),
      unequal_(found.marked),
      lacking_(found.marked.size()),
      claim_(env, *this, legs_, gate()),
      labels_(*this, legs_, claim_, found.label, env.rng().next() | 1),
      is_new_(found.is_new),
      label_block_(std::move(label_block)),
      bitmap_block_(std::move(bitmap_block)),
      closing_(env.stop_token()),
      reviver_(env, *this, legs_, late, options.retry, closing_.token(), gate()),
      pace_(env, options.rate) {
  if (count(State::kCopying) > 0) lacking_ = found.marked;
  choose_primary();
  geometry_.transfer_blocks = UINT32_MAX;
  geometry_.volatile_cache = false;
  uint64_t atomic = label().data_offset;
  const auto take_in = [&](const Geometry& one) {
    geometry_.transfer_blocks = std::min(geometry_.transfer_blocks, one.transfer_blocks);
    geometry_.optimal_blocks = std::max(geometry_.optimal_blocks, one.optimal_blocks);
    geometry_.discard_blocks = std::max(geometry_.discard_blocks, one.discard_blocks);
    geometry_.volatile_cache |= one.volatile_cache;
    atomic = std::gcd(atomic, one.atomic_blocks);
  };
  for (const Leg& leg : legs_) {
    if (leg.drive != nullptr) take_in(leg.drive->geometry());
  }
  for (const std::unique_ptr<Drive>& spare : legs_.spares) take_in(spare->geometry());
  geometry_.atomic_blocks = static_cast<uint32_t>(atomic);
  geometry_.block_size = label().block_size;
  geometry_.blocks = label().data_blocks;
  geometry_.copies = static_cast<uint8_t>(legs_.size());
}

// Of regions where legs may differ nothing is known: what is read there depends on who is lost
// next.
Extent MirrorDrive::extent_at(Lba lba, uint64_t max) const {
  const uint64_t region = lba.value() / label().region_blocks;
  const uint64_t differs = unequal_.next(region);
  const uint64_t here = differs == region ? region + 1 : differs;
  const uint64_t same = std::min(max, here * label().region_blocks - lba.value());
  const size_t leg = pick({lba.value(), 1}, {});
  if (differs == region || leg == SIZE_MAX) return {.blocks = same};
  return legs_[leg].drive->extent_at(Lba(label().data_offset + lba.value()), same);
}

task::Task<Result<void>> MirrorDrive::run(DriveOp& op) {
  switch (op.request.kind) {
    case Request::Kind::kRead:
    case Request::Kind::kCompare:
      co_return co_await read(op, op.request.kind, op.data(), false);
    case Request::Kind::kFlush:
      co_return co_await flush_for_user(op.token());
    default:
      // Every leg gets the same bytes.
      if (has_unstable_memory(op.request)) co_return co_await run_on_copy(env_, *this, op);
      co_return co_await change(op);
  }
}

bool MirrorDrive::may_differ(Span blocks) const {
  const Regions regions = regions_of(blocks);
  for (uint64_t i = 0; i < regions.count; ++i) {
    if (unequal_.has(regions.first + i)) return true;
  }
  return false;
}

// The good leg with the least to read; the primary one where legs may differ. None left: SIZE_MAX.
size_t MirrorDrive::pick(Span blocks, const std::array<bool, kMirrorLegsMax>& tried) const {
  const size_t primary = primary_;
  if (may_differ(blocks) && legs_[primary].state == State::kGood && !tried[primary]) {
    return primary;
  }
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < legs_.size(); ++i) {
    if (legs_[i].state != State::kGood || tried[i]) continue;
    if (best == SIZE_MAX || legs_[i].reads < legs_[best].reads) best = i;
  }
  return best;
}

// Where legs may differ, what somebody reads must be there for good, also when the primary is lost
// next: it is on every leg that is written before anybody sees it.
task::Task<Result<void>> MirrorDrive::settle(Span blocks, bool is_alone, task::CancelToken token) {
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, blocks.first, blocks.count, token);
  if (!is_alone) {
    const Result<void> held = co_await hold;
    if (!held) co_return held;
  }
  Result<Scratch> memory = Scratch::make(env_, blocks.count * geometry_.block_size);
  if (!memory) co_return fail(memory.error());
  // A primary that cannot be read is dropped after some attempts, and the next one is asked.
  for (size_t attempts = 0; may_differ(blocks) && has_others(); ++attempts) {
    if (token.requested()) co_return fail(token.error());
    const uint64_t copied = co_await copy_alone(blocks, memory->bytes());
    if (copied > 0) break;
    if (closing_.requested()) co_return fail(Errc::kClosed, "the mirror is being closed");
    if (attempts == kSettleAttempts) co_return fail(Errc::kIo, "legs of the mirror cannot be read");
  }
  co_return Result<void>();
}

task::Task<Result<void>> MirrorDrive::read(DriveOp& op, Request::Kind kind, Memory memory,
                                           bool is_alone) {
  const Span blocks{op.request.lba.value(), op.request.blocks};
  if (may_differ(blocks) && has_others()) {
    const Result<void> settled = co_await settle(blocks, is_alone, op.token());
    if (!settled) co_return settled;
  }
  Request request = op.request;
  request.kind = kind;
  request.durable = false;
  request.lba = Lba(label().data_offset + blocks.first);
  if (const size_t copy = std::exchange(request.copy, 0); copy > 0) {
    co_return co_await read_leg(copy - 1, request, memory, op.token());
  }
  std::array<bool, kMirrorLegsMax> tried{};
  Result<void> done = fail(Errc::kUnreachable, "no leg of the mirror is left");
  for (;;) {
    const size_t leg = pick(blocks, tried);
    if (leg == SIZE_MAX) co_return done;
    ++legs_[leg].reads;
    done = co_await legs_[leg].drive->submit(request, memory, {}, op.token());
    --legs_[leg].reads;
    look_at_legs();
    const bool is_right = legs_[leg].state == State::kGood && (done || !blames_leg(done.error()));
    if (is_right || op.token().requested()) break;
    tried[leg] = true;
    if (done) done = fail(Errc::kIo, "the leg that was read was lost meanwhile");
  }
  for (size_t leg = 0; done && leg < legs_.size(); ++leg) {
    if (tried[leg] && !closing_.requested()) gate().spawn(write_back(leg, blocks));
  }
  co_return done;
}

task::Task<Result<void>> MirrorDrive::read_leg(size_t leg, Request request, Memory memory,
                                               task::CancelToken token) {
  if (legs_[leg].state != State::kGood) {
    co_return fail(Errc::kUnreachable, "this leg of the mirror does not have all data");
  }
  ++legs_[leg].reads;
  const Result<void> done = co_await legs_[leg].drive->submit(request, memory, {}, token);
  --legs_[leg].reads;
  look_at_legs();
  if (done && legs_[leg].state != State::kGood) {
    co_return fail(Errc::kIo, "the leg that was read was lost meanwhile");
  }
  co_return done;
}

// The blocks could be read elsewhere: written again, most media give them back. A leg that does not
// even take them is dropped.
task::Task<void> MirrorDrive::write_back(size_t leg, Span blocks) {
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, blocks.first, blocks.count);
  const Result<void> held = co_await hold;
  CHECK(held.has_value());
  Result<Scratch> memory = Scratch::make(env_, blocks.count * geometry_.block_size);
  if (!memory || legs_[leg].state != State::kGood) co_return;
  std::array<bool, kMirrorLegsMax> tried{};
  tried[leg] = true;
  const size_t source = pick(blocks, tried);
  if (source == SIZE_MAX) co_return;
  const Lba lba(label().data_offset + blocks.first);
  Result<void> done = co_await legs_[source].drive->read(lba, memory->bytes(), closing_.token());
  look_at_legs();
  if (!done || legs_[source].state != State::kGood || legs_[leg].state != State::kGood) co_return;
  const Request request{.kind = Request::Kind::kWrite, .lba = lba, .blocks = blocks.count};
  done = co_await write_copy(*legs_[leg].drive, request, memory->bytes(), closing_.token());
  if (done || closing_.requested()) co_return;
  drop(leg);
  const Result<void> saved = co_await labels_.save();
  (void)saved;  // it is tried again before the next change completes
}

task::Task<Result<void>> MirrorDrive::change(DriveOp& op) {
  const Span blocks{op.request.lba.value(), op.request.blocks};
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, blocks.first, blocks.count, op.token());
  Result<void> done = co_await hold;
  if (done && claim_.is_due()) done = co_await claim_.check(label().generation, op.token());
  if (!done) co_return done;
  Request request = op.request;
  Memory memory = op.data();
  if (request.kind == Request::Kind::kCompareAndWrite) {
    done = co_await read(op, Request::Kind::kCompare, op.data(), true);
    if (!done) co_return done;
    request.kind = Request::Kind::kWrite;
    memory = op.second();
  }
  co_return co_await change_legs(request, memory, op.token());
}

task::Task<Result<void>> MirrorDrive::change_legs(Request request, Memory memory,
                                                  task::CancelToken token) {
  const Regions regions = regions_of({request.lba.value(), request.blocks});
  Result<void> done = co_await intent_.enter(regions);
  if (done && token.requested()) done = fail(token.error());
  if (done) {
    request.lba = Lba(label().data_offset + request.lba.value());
    Outcome outcome;
    Join join;
    for (size_t leg = 0; leg < legs_.size(); ++leg) {
      if (!is_written(leg)) continue;
      join.add();
      gate().spawn(run_on(leg, request, memory, token, outcome, join));
    }
    const Result<void> all = co_await join.all();
    (void)all;  // judged leg by leg
    done = co_await judge(outcome, regions, token);
  }
  intent_.leave(regions);
  wake_sweeper();
  co_return done;
}

task::Task<void> MirrorDrive::run_on(size_t leg, Request request, Memory memory,
                                     task::CancelToken token, Outcome& outcome, Join& join) {
  outcome.asked[leg] = true;
  Result<void> done = co_await legs_[leg].drive->submit(request, memory, {}, token);
  outcome.results[leg] = done;
  look_at_legs();
  join.finish(done);
}

// What the legs made of a change or a flush, and what follows for them. Success when a good leg has
// it and those that have not are known, durably, to lack it.
task::Task<Result<void>> MirrorDrive::judge(const Outcome& outcome, Regions regions,
                                            task::CancelToken token) {
  bool has_one = false;
  bool is_open = false;  // a leg did not fail, and yet may lack it
  Result<void> first_failure;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (!outcome.asked[leg]) continue;
    const Result<void>& one = outcome.results[leg];
    const bool was_good = legs_[leg].stale_from == 0;
    if (one && was_good && legs_[leg].state == State::kGood) has_one = true;
    if (one) continue;
    if (first_failure) first_failure = one;
    is_open |= token.requested() || !blames_leg(one.error());
  }
  if (!has_one || is_open) {
    for (uint64_t i = 0; i < regions.count; ++i) must_copy(regions.first + i);
    if (first_failure) first_failure = fail(Errc::kIo, "the leg that wrote it was lost meanwhile");
    co_return first_failure;
  }
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (outcome.asked[leg] && !outcome.results[leg]) drop(leg);
  }
  co_return co_await labels_.save();
}

task::Task<Result<void>> MirrorDrive::flush(task::CancelToken token) {
  Outcome outcome;
  Join join;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (!is_written(leg)) continue;
    join.add();
    gate().spawn(run_on(leg, {.kind = Request::Kind::kFlush}, {}, token, outcome, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // judged leg by leg
  const Result<void> done = co_await judge(outcome, {}, token);
  const auto has_lost = [](const Result<void>& one) { return !one && one.error() == Errc::kIo; };
  if (!done && std::ranges::any_of(outcome.results, has_lost)) note_loss();
  co_return done;
}

// A loss is told to all whose flush had begun before it was told first, whichever flush met it: the
// mirror flushes by itself too.
task::Task<Result<void>> MirrorDrive::flush_for_user(task::CancelToken token) {
  const uint64_t told = losses_told_;
  const Result<void> done = co_await flush(token);
  if (told == losses_ || token.requested()) co_return done;
  losses_told_ = losses_;
  co_return done ? fail(Errc::kIo, "a leg lost what was not flushed") : done;
}

}  // namespace cairn::drive
