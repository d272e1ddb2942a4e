// SPDX-License-Identifier: Apache-2.0
#include "service/common/journal_checkpoint.h"

namespace cairn::drive {

void JournalCheckpoint::begin(const Half& half) {
  has_begun_ = true;
  half_ = half;
  watch_.look(drive_);
  chain_ = {.generation = half.generation};
  from_ = 0;
  records_.clear();
}

void JournalCheckpoint::drop() {
  has_begun_ = false;
  records_ = {};
}

JournalRecords JournalCheckpoint::take() {
  save_some(SIZE_MAX);
  has_begun_ = false;
  return records_.take();
}

// Changes that were added before a part lie before it, and it has them too: the order in which
// they happened.
void JournalCheckpoint::save_some(size_t bytes) {
  while (from_ && records_.size() < bytes) from_ = owner_.save(*from_, records_);
}

task::Task<Result<bool>> JournalCheckpoint::write_parts(MutableBytes memory, Claim* claim) {
  const size_t block_size = drive_.geometry().block_size;
  while (has_begun_) {
    save_some(memory.size());
    const bool is_all = !from_;
    if (is_all && records_that_fit(records_.bytes(), block_size) == records_.size()) {
      co_return true;
    }
    const JournalChain::Blocks blocks{.kind = JournalBlockKind::kCheckpoint, .has_last = false};
    const JournalChain::Piece piece =
        chain_.encode(id_, env_.rng(), blocks, records_.bytes(), block_size, memory);
    records_.drop(piece.taken);
    // Its end takes a block.
    if (chain_.next >= half_.blocks) co_return false;
    Result<void> done;
    if (claim != nullptr) done = co_await claim->check();
    if (!done) co_return fail(done.error());
    const MutableBytes pieces[] = {memory.first(piece.count * block_size)};
    const Request request{.kind = Request::Kind::kWrite,
                          .metadata = true,
                          .lba = Lba(half_.first + piece.first),
                          .blocks = piece.count};
    done = co_await drive_.submit(request, pieces);
    if (!done) co_return fail(done.error());
  }
  co_return fail(Errc::kCancelled, "the checkpoint is needed no more");
}

}  // namespace cairn::drive
