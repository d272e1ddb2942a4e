// SPDX-License-Identifier: Apache-2.0
// How a journal finds its newest state. Everything read here may be wrong in any way.
#include <algorithm>

#include "service/common/journal.h"

namespace cairn::drive {

// What lies in a half of the area.
struct Journal::Half {
  uint64_t which = 0;
  // The chain of blocks that starts the half.
  uint64_t generation = 0;
  bool has_checkpoint = false;  // a whole one
  uint64_t end = 0;             // the index after it
  uint64_t tag = 0;             // of its last block
  // All blocks of this journal, in the chain or not.
  uint64_t first_tag = 0;
  uint64_t newest = 0;         // generation
  uint64_t newest_change = 0;  // generation of one that follows a whole checkpoint
  uint64_t latest_batch = 0;   // of the chain's generation

  bool continues(const JournalHead& head, uint64_t index) const {
    if (index != end || head.previous != tag) return false;
    const bool is_change = head.kind == static_cast<uint16_t>(JournalBlockKind::kChanges);
    return index == 0 ? !is_change : head.generation == generation && is_change == has_checkpoint;
  }
  void take(const JournalHead& head, uint64_t index) {
    newest = std::max(newest, head.generation);
    if (index == 0) first_tag = head.tag;
    if (head.kind == static_cast<uint16_t>(JournalBlockKind::kChanges)) {
      newest_change = std::max(newest_change, head.generation);
    }
    if (continues(head, index)) {
      generation = head.generation;
      has_checkpoint |= head.kind != static_cast<uint16_t>(JournalBlockKind::kCheckpoint);
      end = index + 1;
      tag = head.tag;
    } else if (head.generation == generation) {
      latest_batch = std::max<uint64_t>(latest_batch, head.batch);
    }
  }
};

// Into the memory, from `index` on: how many.
task::Task<Result<uint64_t>> Journal::read_blocks(uint64_t half, uint64_t index) {
  const uint64_t count = std::min(memory_.size() / block_size(), half_blocks() - index);
  const Result<void> done =
      co_await drive_.read(Lba(first_of(half) + index), memory_.first(count * block_size()));
  if (!done) co_return fail(done.error());
  co_return count;
}

task::Task<Result<void>> Journal::scan(Half& half) {
  for (uint64_t index = 0; index < half_blocks();) {
    const Result<uint64_t> count = co_await read_blocks(half.which, index);
    if (!count) co_return fail(count.error());
    for (uint64_t i = 0; i < *count; ++i, ++index) {
      const auto block = decode_journal_block(id_, memory_.subspan(i * block_size(), block_size()));
      if (block && block->head.index == index && block->head.generation % 2 == half.which) {
        half.take(block->head, index);
      }
    }
  }
  co_return Result<void>();
}

task::Task<Result<void>> Journal::read_all() {
  Half halves[] = {{.which = 0}, {.which = 1}};
  for (Half& half : halves) {
    const Result<void> scanned = co_await scan(half);
    if (!scanned) co_return scanned;
  }
  const bool second = halves[1].has_checkpoint &&
                      (!halves[0].has_checkpoint || halves[1].generation > halves[0].generation);
  const Half& chosen = halves[second ? 1 : 0];
  const Half& other = halves[second ? 0 : 1];
  if (!chosen.has_checkpoint) {
    co_return fail(Errc::kCorrupt, "the journal on the drive below is damaged: restore the drive");
  }
  // A crash leaves a gap only in what was written last. Anything later says that more was there.
  if (chosen.latest_batch > chosen.end || chosen.newest > chosen.generation ||
      other.newest_change > chosen.generation) {
    co_return fail(Errc::kCorrupt, "the journal on the drive below has a gap: restore the drive");
  }
  Result<void> replayed = co_await replay(chosen);
  if (replayed) replayed = owner_.check_replayed();
  if (!replayed) co_return replayed;
  log_ = {.generation = chosen.generation, .next = chosen.end, .tag = chosen.tag};
  committed_ = chosen.end;
  other_tag_ = other.first_tag;
  other_is_begun_ = other.newest > chosen.generation;
  must_checkpoint_ = false;
  co_return Result<void>();
}

task::Task<Result<void>> Journal::own(Claim& claim) {
  const Result<bool> grown = co_await has_grown();
  if (!grown) co_return fail(grown.error());
  if (*grown) co_return fail(changed_meanwhile());
  claim_ = &claim;
  co_return Result<void>();
}

// Whether a block follows the last one, or another checkpoint was begun, since it was read; or
// whether one that had been begun is whole by now.
task::Task<Result<bool>> Journal::has_grown() {
  if (log_.next < half_blocks()) {
    const Result<uint64_t> count = co_await read_blocks(log_.generation, log_.next);
    if (!count) co_return fail(count.error());
    const auto block = decode_journal_block(id_, memory_.first(block_size()));
    if (block && block->head.index == log_.next && block->head.generation == log_.generation &&
        block->head.previous == log_.tag) {
      co_return true;
    }
  }
  const uint64_t other = (log_.generation + 1) % 2;
  if (other_is_begun_) {
    Half half{.which = other};
    const Result<void> scanned = co_await scan(half);
    if (!scanned) co_return fail(scanned.error());
    co_return half.first_tag != other_tag_ ||
        (half.has_checkpoint && half.generation > log_.generation);
  }
  const Result<uint64_t> count = co_await read_blocks(other, 0);
  if (!count) co_return fail(count.error());
  const auto block = decode_journal_block(id_, memory_.first(block_size()));
  const bool counts = block && block->head.index == 0 && block->head.generation % 2 == other;
  co_return (counts ? block->head.tag : 0) != other_tag_;
}

task::Task<Result<void>> Journal::replay_durable() {
  const Half half{.which = log_.generation % 2, .generation = log_.generation, .end = committed_};
  co_return co_await replay(half);
}

task::Task<Result<void>> Journal::replay(const Half& chosen) {
  for (uint64_t index = 0; index < chosen.end;) {
    const Result<uint64_t> count = co_await read_blocks(chosen.which, index);
    if (!count) co_return fail(count.error());
    for (uint64_t i = 0; i < *count && index < chosen.end; ++i, ++index) {
      const auto block = decode_journal_block(id_, memory_.subspan(i * block_size(), block_size()));
      if (!block || block->head.generation != chosen.generation) {
        co_return fail(Errc::kCorrupt, "the drive below reads differently from time to time");
      }
      Bytes rest = block->records;
      while (const std::optional<Bytes> record = take_record(rest)) {
        Result<void> taken = owner_.replay(*record);
        if (!taken) co_return taken;
      }
    }
  }
  co_return Result<void>();
}

}  // namespace cairn::drive
