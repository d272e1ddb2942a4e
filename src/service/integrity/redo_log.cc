// SPDX-License-Identifier: Apache-2.0
#include "service/integrity/redo_log.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "drive/pieces.h"

namespace cairn::drive {

namespace {

MutableBytes lent(Bytes bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // writes only read it
}

}  // namespace

RedoLog::RedoLog(env::Env& env, Drive& below, Label label, const AtomicLayout& layout,
                 uint64_t unit, Losses& losses)
    : env_(env),
      below_(below),
      label_(std::move(label)),
      claim_(env, below, label_),
      layout_(layout),
      unit_(unit),
      batch_blocks_max_(std::min(std::max<uint64_t>(unit + 1, below.geometry().transfer_blocks),
                                 layout.log_blocks)),
      losses_(losses) {
  CHECK(layout_.log_blocks > unit_, "the log has room for a write");
  all_placed_.set();
  watch_.look(below_);
}

task::Task<Result<void>> RedoLog::append(uint64_t first, Bytes data) {
  Entry entry;
  entry.first = first;
  entry.data = data;
  waiting_.push_back(entry);
  if (!std::exchange(committer_runs_, true)) gate_.spawn(commit_all());
  const Result<void> waited = co_await entry.done.wait();
  co_return waited ? entry.result : waited;
}

void RedoLog::placed(const Result<void>& written) {
  if (!written) is_broken_ = true;
  if (--unplaced_ == 0) all_placed_.set();
}

bool RedoLog::holds(uint64_t first, uint64_t blocks) const {
  const uint64_t from = first / unit_;
  const uint64_t to = (first + blocks - 1) / unit_;
  if (to - from < units_.size()) {
    for (uint64_t unit = from; unit <= to; ++unit) {
      if (units_.contains(unit)) return true;
    }
    return false;
  }
  return std::ranges::any_of(units_, [&](uint64_t unit) { return from <= unit && unit <= to; });
}

task::Task<void> RedoLog::commit_all() {
  while (!waiting_.empty()) {
    const Result<void> turn = co_await turn_.acquire();
    CHECK(turn, "nobody stops the committer");
    Entries entries;
    AtomicBatch batch = take_batch(entries);
    const Result<void> done = co_await commit(batch, entries);
    turn_.release();
    while (Entry* entry = entries.pop_front()) {
      entry->result = done;
      entry->done.set();
    }
  }
  committer_runs_ = false;
}

AtomicBatch RedoLog::take_batch(Entries& taken) {
  AtomicBatch batch;
  uint64_t blocks = 1;
  while (Entry* entry = waiting_.front()) {
    const bool is_full = batch.records.size() == atomic_records_max(block_size()) ||
                         blocks + blocks_of(*entry) > batch_blocks_max_;
    if (is_full && !batch.records.empty()) break;
    waiting_.pop_front();
    taken.push_back(*entry);
    batch.records.push_back({.first = entry->first, .blocks = blocks_of(*entry)});
    blocks += blocks_of(*entry);
  }
  return batch;
}

task::Task<Result<void>> RedoLog::commit(AtomicBatch& batch, Entries& entries) {
  if (claim_.is_due()) {
    const Result<void> mine = co_await claim_.check();
    if (!mine) co_return mine;
  }
  const uint64_t blocks = 1 + batch.content_blocks();
  if (is_doubtful_ || used_ + blocks > layout_.log_blocks) {
    const Result<void> emptied = co_await empty_now();
    if (!emptied) co_return emptied;
  }
  // Also when it fails: then it may be in force until the log is emptied.
  for (const AtomicBatch::Record& record : batch.records) {
    for (uint64_t unit = record.first / unit_; unit <= (record.first + record.blocks - 1) / unit_;
         ++unit) {
      units_.insert(unit);
    }
  }
  const Result<void> written = co_await write_batch(batch, entries);
  if (!written) {
    is_doubtful_ = true;
    co_return written;
  }
  used_ += blocks;
  ++batches_;
  unplaced_ += batch.records.size();
  all_placed_.reset();
  counts_.writes += batch.records.size();
  ++counts_.batches;
  co_return Result<void>();
}

task::Task<Result<void>> RedoLog::write_batch(AtomicBatch& batch, Entries& entries) {
  Result<Scratch> head = Scratch::make(env_, block_size());
  if (!head) co_return fail(head.error());
  std::vector<MutableBytes> memory = {head->bytes()};
  entries.for_each([&](Entry& entry) {
    memory.push_back(lent(entry.data));
    batch.content_checksum = crc32c(entry.data, batch.content_checksum);
  });
  batch.name = name_of(batches_);
  encode_atomic_batch(batch, head->bytes());
  const uint64_t blocks = 1 + batch.content_blocks();
  const uint64_t step = below().geometry().transfer_blocks;
  for (uint64_t at = 0; at < blocks; at += step) {
    const uint64_t count = std::min(step, blocks - at);
    Pieces part;
    part.add(memory, at * block_size(), count * block_size());
    const Request request{.kind = Request::Kind::kWrite,
                          .durable = true,
                          .metadata = true,
                          .lba = Lba(kLabelBlocks + used_ + at),
                          .blocks = count};
    const Result<void> written = co_await below().submit(request, part.all());
    if (!written) co_return written;
  }
  co_return Result<void>();
}

task::Task<Result<void>> RedoLog::empty() {
  const Result<void> turn = co_await turn_.acquire();
  if (!turn) co_return turn;
  const Result<void> done = co_await empty_now();
  turn_.release();
  co_return done;
}

task::Task<Result<void>> RedoLog::empty_now() {
  const Result<void> waited = co_await all_placed_.wait();
  if (!waited) co_return waited;
  if (batches_ == 0 && !is_doubtful_) co_return Result<void>();
  if (is_broken_) {
    const Result<void> mine = co_await claim_.check();
    if (!mine) co_return mine;
  }
  Result<void> settled = co_await settle();
  // A drive that lost something says so once, and keeps what is written to it again.
  if (!settled && is_broken_) settled = co_await settle();
  if (!settled) co_return settled;
  is_doubtful_ = true;
  const Result<void> written = co_await write_label(env_, below(), kAtomicLabel, label_);
  if (!written) co_return written;
  is_doubtful_ = false;
  is_broken_ = false;
  used_ = 0;
  batches_ = 0;
  units_.clear();
  ++counts_.emptied;
  co_return Result<void>();
}

void RedoLog::notice_losses() {
  if (!watch_.has_changed(below_)) return;
  watch_.look(below_);
  losses_.add();
  lose();
}

task::Task<Result<void>> RedoLog::settle() {
  notice_losses();
  const uint64_t losses = losses_.count();
  if (is_broken_) {
    const Result<void> replayed = co_await replay(batches_);
    if (!replayed) co_return replayed;
  }
  const Result<void> flushed = co_await below().flush();
  losses_.flushed(flushed);
  notice_losses();
  // Another flush may have been told of what this one counts on.
  if (losses == losses_.count()) co_return flushed;
  lose();
  co_return flushed ? fail(Errc::kIo, "the drive below lost writes") : flushed;
}

task::Task<Result<void>> RedoLog::recover() {
  uint64_t found = 0;
  const Result<void> searched = co_await find_batches(found);
  if (!searched) co_return searched;
  if (found > 0) {
    batches_ = found;
    is_broken_ = true;
    const Result<void> emptied = co_await empty();
    if (!emptied) co_return emptied;
  }
  if (label_.writer != 0) co_return Result<void>();
  co_return co_await claim_label(env_, below(), kAtomicLabel, label_);
}

Result<Scratch> RedoLog::chunk_memory() {
  const uint64_t blocks =
      std::min<uint64_t>(below().geometry().transfer_blocks, std::max(1U, 65536 / block_size()));
  return Scratch::make(env_, blocks * block_size());
}

// kNotFound: there is none in force.
task::Task<Result<AtomicBatch>> RedoLog::read_batch(uint64_t at, uint64_t index) {
  Result<Scratch> memory = Scratch::make(env_, block_size());
  if (!memory) co_return fail(memory.error());
  const Result<void> read = co_await below().read(Lba(kLabelBlocks + at), memory->bytes());
  if (!read) co_return fail(read.error());
  co_return decode_atomic_batch(memory->bytes(), name_of(index), layout_, layout_.log_blocks - at);
}

task::Task<Result<void>> RedoLog::check_content(const AtomicBatch& batch, uint64_t at,
                                                MutableBytes memory) {
  const uint64_t blocks = batch.content_blocks();
  const uint64_t step = memory.size() / block_size();
  uint32_t checksum = 0;
  for (uint64_t done = 0; done < blocks; done += step) {
    const MutableBytes part = memory.first(std::min(step, blocks - done) * block_size());
    const Result<void> read = co_await below().read(Lba(kLabelBlocks + at + 1 + done), part);
    if (!read) co_return read;
    checksum = crc32c(part, checksum);
  }
  if (checksum != batch.content_checksum) co_return fail(Errc::kNotFound, "a torn batch");
  co_return Result<void>();
}

task::Task<Result<void>> RedoLog::find_batches(uint64_t& found) {
  Result<Scratch> memory = chunk_memory();
  if (!memory) co_return fail(memory.error());
  for (uint64_t at = 0; at < layout_.log_blocks;) {
    const Result<AtomicBatch> batch = co_await read_batch(at, found);
    if (!batch && batch.error() == Errc::kNotFound) break;
    if (!batch) co_return fail(batch.error());
    const Result<void> whole = co_await check_content(*batch, at, memory->bytes());
    if (!whole && whole.error() == Errc::kNotFound) break;
    if (!whole) co_return whole;
    ++found;
    counts_.replayed += batch->records.size();
    at += 1 + batch->content_blocks();
  }
  co_return Result<void>();
}

task::Task<Result<void>> RedoLog::replay(uint64_t batches) {
  Result<Scratch> memory = chunk_memory();
  if (!memory) co_return fail(memory.error());
  uint64_t at = 0;
  for (uint64_t index = 0; index < batches; ++index) {
    const Result<AtomicBatch> batch = co_await read_batch(at, index);
    if (!batch) co_return fail(Errc::kCorrupt, "a batch of the log is gone");
    const Result<void> placed = co_await place(*batch, at, memory->bytes());
    if (!placed) co_return placed;
    at += 1 + batch->content_blocks();
  }
  co_return Result<void>();
}

task::Task<Result<void>> RedoLog::place(const AtomicBatch& batch, uint64_t at,
                                        MutableBytes memory) {
  const uint64_t step = memory.size() / block_size();
  uint64_t from = kLabelBlocks + at + 1;
  for (const AtomicBatch::Record& record : batch.records) {
    for (uint64_t done = 0; done < record.blocks; done += step) {
      const MutableBytes part = memory.first(std::min(step, record.blocks - done) * block_size());
      const Result<void> read = co_await below().read(Lba(from + done), part);
      if (!read) co_return read;
      const uint64_t to = layout_.data_first + record.first + done;
      const Result<void> written = co_await below().write(Lba(to), part);
      if (!written) co_return written;
    }
    from += record.blocks;
  }
  co_return Result<void>();
}

task::Task<void> RedoLog::close() {
  // If it cannot be emptied, opening it will put it in place.
  [[maybe_unused]] const Result<void> emptied = co_await empty();
  co_await gate_.close();
}

}  // namespace cairn::drive
