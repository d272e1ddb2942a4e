// SPDX-License-Identifier: Apache-2.0
// When a journal writes a checkpoint, and how it comes to count.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "service/common/journal.h"

namespace cairn::drive {

namespace {

// Of a write to a checkpoint that nobody waits for: small in a small area, so that changes go on
// between two of them there too.
constexpr uint64_t kPartBytesMax = 65536;
constexpr uint64_t kPartsMin = 32;
// A checkpoint is begun when this part of a half is left for the changes until it is done. A state
// takes at most half of a half (blocks_for()) and is written in large pieces, a change takes a
// block and a durable write of its own at worst.
constexpr uint64_t kPartLeft = 8;

}  // namespace

bool Journal::is_full() const {
  if (must_checkpoint_) return false;
  const uint64_t room = half_blocks() - std::min(log_.next, half_blocks());
  return blocks_of_records(waiting_.bytes(), block_size()) > room;
}

// Nothing is added to the half that counts any more: what waits is in the checkpoint.
void Journal::need_checkpoint() {
  must_checkpoint_ = true;
  waiting_.clear();
}

JournalCheckpoint::Half Journal::next_half() const {
  const uint64_t generation = log_.generation + 1;
  return {.first = first_of(generation), .blocks = half_blocks(), .generation = generation};
}

void Journal::save_early() {
  const uint64_t left = half_blocks() - std::min(log_.next, half_blocks());
  if (has_lost_ || must_checkpoint_ || left > half_blocks() / kPartLeft + 1) return;
  if (checkpoint_.has_begun() || !saver_rests_.is_set()) return;
  const uint64_t max =
      std::min<uint64_t>(kPartBytesMax / block_size(), drive_.geometry().transfer_blocks);
  const uint64_t blocks =
      std::clamp<uint64_t>(half_blocks() / kPartsMin, 1, std::max<uint64_t>(max, 1));
  Result<Buffer> memory = env_.buffers().allocate(blocks * block_size());
  // Without one it has time until the half is full, when the memory for changes is not needed.
  if (memory) begin_saving(std::move(*memory));
}

// Without memory of its own it takes that for changes, of which none are written meanwhile.
void Journal::begin_saving(std::optional<Buffer> memory) {
  if (checkpoint_.has_begun() || !saver_rests_.is_set()) return;
  checkpoint_.begin(next_half());
  saver_rests_.reset();
  gate_.spawn(save(std::move(memory)));
}

task::Task<void> Journal::save(std::optional<Buffer> memory) {
  Buffer& used = memory ? *memory : memory_;
  saved_ = co_await save_parts(used.first(used.size()));
  if (!saved_) checkpoint_.drop();
  saver_rests_.set();
}

// All but the end, flushed: what is left for the commit that ends it is short.
task::Task<Result<void>> Journal::save_parts(MutableBytes memory) {
  const Result<bool> fits = co_await checkpoint_.write_parts(memory, claim_);
  if (!fits) co_return fail(fits.error());
  if (!*fits) {
    // Changes came faster than it went: it is saved at one instant, when it is taken.
    checkpoint_.begin(next_half());
    co_return Result<void>();
  }
  Result<void> done;
  if (checkpoint_.chain().next > 0) done = co_await flush();
  if (done && !checkpoint_.has_begun()) {
    done = fail(Errc::kCancelled, "the checkpoint is needed no more");
  }
  co_return done;
}

// For those who begin or begin anew, while nothing else is written.
task::Task<Result<void>> Journal::save_now() {
  CHECK(must_checkpoint_ && saver_rests_.is_set() && !checkpoint_.has_begun());
  checkpoint_.begin(next_half());
  Result<void> done = co_await save_parts(memory_.first(memory_.size()));
  if (!done) {
    checkpoint_.drop();
    co_return done;
  }
  Batch batch = take_batch();
  done = co_await write_batch(batch);
  if (done) {
    durable_ = batch.number;
  } else {
    need_checkpoint();
  }
  co_return done;
}

void Journal::take_checkpoint(Batch& batch) {
  must_checkpoint_ = false;
  waiting_.clear();
  batch.records = checkpoint_.take();
  const uint64_t blocks = blocks_of_records(batch.records.bytes(), block_size());
  if (checkpoint_.chain().next + std::max<uint64_t>(blocks, 1) > half_blocks()) {
    checkpoint_.begin(next_half());
    batch.records = checkpoint_.take();
  }
  batch.chain = checkpoint_.chain();
}

// What does not fit one write is flushed before the end is written.
task::Task<Result<void>> Journal::write_start(Batch& batch, Bytes& records) {
  if (batch.chain.next + blocks_of_records(records, block_size()) > half_blocks()) {
    co_return fail(Errc::kNoSpace, "the state has outgrown the area of its journal");
  }
  if (records.size() <= memory_.size()) co_return Result<void>();
  Result<void> done = co_await check_claim();
  while (done && records.size() > memory_.size()) done = co_await write_some(batch, records, false);
  batch.needs_flush = true;
  co_return done;
}

}  // namespace cairn::drive
