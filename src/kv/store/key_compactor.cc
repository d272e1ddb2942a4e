// SPDX-License-Identifier: Apache-2.0
#include "kv/store/key_compactor.h"

#include <algorithm>
#include <utility>

#include "kv/store/compaction.h"

namespace cairn::kv::store {

using drive::Scratch;
using task::Task;

namespace {

constexpr Duration kPurgeEvery = 5_s;  // a pass writes all of the log that lives

}  // namespace

// As many buckets from there on as a window has, in one lap.
Task<KeyCompactor::Window> KeyCompactor::read(uint64_t begin) {
  const Layout& layout = core_.superblock.layout;
  const uint64_t count = std::min({key_window_buckets(layout), core_.key_space.tail() - begin,
                                   core_.key_space.lap_left(begin)});
  Window window{.begin = begin};
  Result<Scratch> memory = Scratch::make(core_.env, count * layout.block_bytes);
  if (!memory) {
    window.failed = memory.error();
    co_return window;
  }
  const Result<void> read =
      co_await core_.io.read(layout.key_block + core_.key_space.place_of(begin), memory->bytes());
  if (!read) window.failed = read.error();
  window.memory = std::move(*memory);
  co_return window;
}

// A bucket that nobody can read: what a segment had there is lost, and is said to be. Returns where
// the log goes on.
uint64_t KeyCompactor::give_up_bucket(uint64_t position) {
  ++core_.stats.damaged;
  const uint64_t place = core_.key_space.place_of(position);
  const uint64_t segments = core_.table.segments();
  for (uint64_t segment = 0; segment < segments; ++segment) {
    const SegmentTable::Chain chain = core_.table.at(static_cast<uint32_t>(segment));
    if (place >= chain.place && place < uint64_t{chain.place} + chain.length) {
      core_.table.set_damaged(static_cast<uint32_t>(segment));
      return position + chain.length - (place - chain.place);
    }
  }
  return position + 1;
}

KeyCompactor::Parsed KeyCompactor::parse(const Window& window) {
  const size_t bucket_bytes = core_.io.block_bytes();
  const uint64_t count = window.memory.size() / bucket_bytes;
  Parsed parsed{.end = window.begin};
  while (parsed.end - window.begin < count) {
    const uint64_t position = parsed.end;
    const Result<BucketHeader> header = decode_bucket(
        core_.label.id, position,
        window.memory.subspan((position - window.begin) * bucket_bytes, bucket_bytes));
    if (!header) {
      parsed.end = give_up_bucket(position);
      continue;
    }
    if (header->segment == kNoSegment) {
      parsed.end += core_.key_space.lap_left(position);
      break;
    }
    parsed.end += header->chain_length - header->chain_index;
    const Found found{
        .segment = header->segment,
        .chain = {.length = header->chain_length,
                  .place = static_cast<uint32_t>(core_.key_space.place_of(position))}};
    if (header->chain_index == 0 && header->segment < core_.table.segments() &&
        still_there(found)) {
      parsed.live.push_back(found);
      parsed.buckets += found.chain.length;
    }
  }
  return parsed;
}

// Waits for whoever has the segment.
Task<Result<void>> KeyCompactor::move_one(Found found) {
  Result<LockedSegment> locked = co_await lock_segment(
      core_, found.segment, LogSpace::User::kCompaction, core_.stopping.token());
  if (!still_there(found)) co_return Result<void>();
  if (!locked && locked.error() == Errc::kCorrupt) {
    ++core_.stats.damaged;
    core_.table.set_damaged(found.segment);
    co_return Result<void>();
  }
  if (!locked) co_return fail(locked.error());
  purge_expired(core_, locked->write);
  const KeyLog::Values values{.losses = core_.syncer.losses(), .are_durable = false};
  Result<void> done = co_await commit_segment(core_, *locked, values);
  if (done) core_.stats.key_buckets_moved += found.chain.length;
  co_return done;
}

// All that nobody has locked in one commit; the others one by one.
Task<Result<void>> KeyCompactor::move(const Window& window, const Parsed& parsed) {
  const size_t bucket_bytes = core_.io.block_bytes();
  const Result<void> reserved = co_await core_.key_space.reserve(
      parsed.buckets, LogSpace::User::kCompaction, core_.stopping.token());
  if (!reserved) co_return reserved;
  Room room(core_.key_space, parsed.buckets);
  std::vector<task::Units> locks;
  std::vector<SegmentWrite> writes;
  std::vector<Found> others;
  uint64_t buckets_before = 0;
  for (const Found& found : parsed.live) {
    if (!still_there(found)) continue;
    const uint64_t from = (core_.key_space.position_of(found.chain.place) - window.begin);
    const size_t size = found.chain.length * bucket_bytes;
    const bool is_inside = from * bucket_bytes + size <= window.memory.size();
    task::Semaphore& lock = core_.locks.of(found.segment);
    if (!is_inside || !lock.try_acquire(1)) {
      others.push_back(found);
      continue;
    }
    task::Units held(lock, 1);
    const Bytes chain = window.memory.subspan(from * bucket_bytes, size);
    const uint64_t position = window.begin + from;
    if (!check_chain(core_.label.id, position, found.segment, chain, bucket_bytes)) {
      ++core_.stats.damaged;
      core_.table.set_damaged(found.segment);
      continue;
    }
    SegmentWrite& write = writes.emplace_back(SegmentWrite{.segment = found.segment});
    append_items(chain, bucket_bytes, write.items);
    purge_expired(core_, write);
    locks.push_back(std::move(held));
    buckets_before += found.chain.length;
  }
  if (!writes.empty()) {
    const uint64_t buckets = core_.keys->buckets_of_all(writes);
    const KeyLog::Values values{.losses = core_.syncer.losses(), .are_durable = false};
    const Result<void> done = co_await core_.keys->commit(writes, values);
    if (!done) co_return done;
    room.used(buckets);
    core_.note_commit();
    core_.stats.key_buckets_moved += buckets_before;
  }
  locks.clear();
  room.release();
  for (const Found& found : others) {
    const Result<void> moved = co_await move_one(found);
    if (!moved) co_return moved;
  }
  co_return Result<void>();
}

Task<Result<bool>> KeyCompactor::step() {
  const uint64_t begin = core_.key_space.head();
  if (begin == core_.key_space.tail()) co_return false;
  Window window;
  if (next_ && next_->begin == begin && !next_->failed) {
    window = std::move(*next_);
  } else {
    window = co_await read(begin);
  }
  next_.reset();
  if (window.failed) co_return fail(*window.failed);
  const Parsed parsed = parse(window);
  std::optional<Task<Window>> reading;
  if (parsed.end < core_.key_space.tail()) reading.emplace(read(parsed.end));
  Result<void> done = co_await move(window, parsed);
  if (reading) next_ = co_await *reading;
  // What was moved must be durable before its old place is used again.
  if (done && core_.syncer.mode() != Durability::kCommit) done = co_await core_.keys->sync();
  if (!done) co_return fail(done.error());
  if (core_.key_space.head() == begin) core_.key_space.move_head(parsed.end);
  co_return true;
}

bool KeyCompactor::has_work() {
  LogSpace& space = core_.key_space;
  if (std::exchange(core_.purge_wanted, false) && space.head() >= purge_until_ &&
      core_.env.now() >= purge_again_) {
    purge_until_ = space.tail();
    purge_again_ = core_.env.now() + kPurgeEvery;
  }
  return space.is_low() || space.head() < purge_until_;
}

Task<void> KeyCompactor::run() { return compact(core_, core_.key_space, *this); }

}  // namespace cairn::kv::store
