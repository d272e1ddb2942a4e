// SPDX-License-Identifier: Apache-2.0
#include "kv/store/checkpoint.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "drive/scratch.h"

namespace cairn::kv::store {

using drive::Scratch;
using task::Task;

namespace {

constexpr size_t kStepBytes = 256_KiB;

}  // namespace

Checkpoint Checkpointer::now(uint64_t number) const {
  return {.number = number,
          .key_from = core_.key_space.tail(),
          .key_stable = core_.key_space.tail(),
          .value_head = core_.value_space.head(),
          .value_tail = core_.value_space.tail(),
          .keys = core_.totals.keys,
          .live_units = core_.totals.live_units,
          .next_version = core_.next_version};
}

Task<Result<void>> Checkpointer::write_table(uint64_t number) {
  const Layout& layout = core_.superblock.layout;
  const size_t page_size = page_bytes(layout.block_bytes);
  const uint64_t pages = pages_of(layout.segments);
  const uint64_t step = std::max<uint64_t>(kStepBytes / page_size, 1);
  Result<Scratch> memory = Scratch::make(core_.env, step * page_size);
  if (!memory) co_return fail(memory.error());
  const uint64_t area = layout.table_block + number % 2 * layout.table_blocks;
  for (uint64_t first = 0; first < pages; first += step) {
    const uint64_t count = std::min(step, pages - first);
    for (uint64_t i = 0; i < count; ++i) {
      encode_page(core_.label.id, number, static_cast<uint32_t>(first + i),
                  core_.table.page(first + i), memory->subspan(i * page_size, page_size));
    }
    const Result<void> written = co_await core_.io.write(
        area + first * page_size / layout.block_bytes, memory->first(count * page_size), false);
    if (!written) co_return written;
  }
  co_return Result<void>();
}

Task<Result<void>> Checkpointer::write_superblock(Checkpoint checkpoint) {
  Superblock next = core_.superblock;
  next.checkpoint = checkpoint;
  drive::Label label = core_.label;
  label.body = encode_superblock(next);
  const Result<void> written =
      co_await drive::write_label(core_.env, *core_.drive, kLabelKind, label);
  if (!written) {
    unsure_ = checkpoint;
  } else {
    unsure_.reset();
    core_.superblock = next;
    core_.label = std::move(label);
    core_.key_space.pin(checkpoint.key_from);
    ++core_.stats.checkpoints;
  }
  co_return written;
}

Task<Result<void>> Checkpointer::save() {
  const Result<void> entered = co_await one_.acquire();
  if (!entered) co_return entered;
  const task::Units held(one_, 1);
  core_.checkpoint_wanted.reset();
  // Either of two superblocks may be in force, and with it either table: first one has to be.
  Result<void> done;
  if (unsure_) done = co_await write_superblock(*unsure_);
  if (!done) co_return done;
  Checkpoint checkpoint = now(core_.superblock.checkpoint.number + 1);
  done = co_await write_table(checkpoint.number);
  if (!done) co_return done;
  // The table may speak of commits up to here, and after this they are durable.
  checkpoint.key_stable = core_.key_space.tail();
  done = co_await core_.keys->sync();
  if (done) done = co_await write_superblock(checkpoint);
  co_return done;
}

Task<Result<void>> Checkpointer::save_empty() {
  const Result<void> entered = co_await one_.acquire();
  if (!entered) co_return entered;
  const task::Units held(one_, 1);
  Checkpoint checkpoint = now(0);
  checkpoint.value_head = checkpoint.value_tail;
  checkpoint.keys = 0;
  checkpoint.live_units = 0;
  const Result<void> written = co_await write_superblock(checkpoint);
  if (!written) core_.keys->stop(written.error());
  co_return written;
}

}  // namespace cairn::kv::store
